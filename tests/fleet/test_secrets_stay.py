"""What a reference stands for is not in a lake, nor in a command line of what a job starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from planted import ENVIRONMENT, MARK, NAMES, echoing, find_planted, refer, watching_processes
from planted import write_client as write

from reconciler.sandbox.cluster import Cluster

pytestmark = [pytest.mark.fleet, pytest.mark.cluster]


@pytest.mark.slow
def test_no_secret_is_in_a_lake_or_on_a_command_line(cluster3: Cluster, tmp_path: Path) -> None:
    servers = {"bootstrap.servers": cluster3.bootstrap_servers}
    plain = servers | refer(*(name for name in NAMES if not name.endswith("ca.pem")))
    tokens = servers | {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        **refer("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"),
    }
    lost = {"security.protocol": "SSL", **servers, **refer("ssl.keystore.location")}
    (tmp_path / "topics").mkdir()
    with echoing() as endpoint, watching_processes() as commands:
        tokens["sasl.oauthbearer.token.endpoint.url"] = endpoint
        clients = {"plain": plain, "tokens": tokens, "lost": lost}
        lines = [f"  {name}: {{client: {write(client)}}}" for name, client in clients.items()]
        text = "\n".join(["version: 1", "clusters:", *lines, ""])
        (tmp_path / "topics" / "clusters.yaml").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", "fleet", "collect", "--lake", "lake"],
            cwd=tmp_path,
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )
    rows = [str(pq.ParquetFile(p).read().to_pylist()) for p in tmp_path.rglob("*.parquet")]
    assert done.returncode == 1, done.stderr
    assert any("connect-token" in row and "***" in row for row in rows)
    assert not [row for row in rows if MARK in row]
    assert find_planted(tmp_path, done.stdout, done.stderr) == []
    assert commands == []
