"""Jars: what the lock file pins, and what may enter the cache."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pin_jars import RELEASES

import reconciler.sandbox.jars
from reconciler.errors import SandboxError
from reconciler.sandbox.jars import (
    Jar,
    download_jars,
    fetch_jars,
    find_release,
    known_releases,
    locked_jars,
)
from reconciler.sandbox.request import Silence
from reconciler.spec.catalogue import LINES, spell_line

CONTENT = b"classes" * 50_000
JAR = Jar("org.example:thing:1.0", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
PATH = "org/example/thing/1.0/thing-1.0.jar"


def test_the_lock_file_pins_every_release_that_the_command_knows() -> None:
    assert known_releases() == RELEASES


def test_the_page_of_kafka_versions_lists_them_with_their_lines() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "kafka-versions.md"
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \|", page.read_text(), re.MULTILINE)
    assert rows == [(release.rpartition(".")[0], release) for release in RELEASES]
    assert [line for line, _ in rows] == [spell_line(line) for line in LINES]


@pytest.mark.parametrize("release", RELEASES)
def test_a_class_path_holds_the_broker_a_logger_and_no_jar_twice(release: str) -> None:
    jars = locked_jars(release)
    names = [jar.coordinate.rsplit(":", 1)[0] for jar in jars]
    assert jars[0].coordinate == f"org.apache.kafka:kafka_2.13:{release}"
    assert "org.slf4j:slf4j-reload4j" in names
    assert len(names) == len(set(names))
    assert all(len(jar.sha256) == 64 and jar.bytes > 0 for jar in jars)


@pytest.mark.parametrize(
    ("wanted", "release"),
    [(None, "4.4.0"), ("4.4.0", "4.4.0"), ("4.1", "4.1.2"), ("3", "3.9.2"), ("4", "4.4.0")],
)
def test_a_release_is_found_by_version_or_line(wanted: str | None, release: str) -> None:
    assert find_release(wanted) == release


@pytest.mark.parametrize("wanted", ["", "4.", "4.1.0", "5.0.0", "latest"])
def test_an_unknown_version_is_refused_with_the_known_ones(wanted: str) -> None:
    with pytest.raises(SandboxError, match=r"does not run Kafka '.*'; it runs 3\.9\.2, 4\.0\.2"):
        find_release(wanted)


class Repository(ThreadingHTTPServer):
    """A Maven repository on loopback that answers each request with the next of its answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), RepositoryHandler)
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class RepositoryHandler(BaseHTTPRequestHandler):
    server: Repository

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, content = self.server.answers.pop(0)
        self.send_response(status)
        # Always the full length: a shorter content is a transfer that was cut off.
        self.send_header("Content-Length", str(max(len(content), JAR.bytes)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    monkeypatch.setattr(reconciler.sandbox.jars, "PAUSE_S", 0)
    with Repository() as server:
        monkeypatch.setattr(reconciler.sandbox.jars, "_repositories", lambda: (server.address,))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def files_in(directory: Path) -> list[str]:
    return [str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()]


def test_a_jar_is_complete(repository: Repository, tmp_path: Path) -> None:
    repository.answers = [(200, CONTENT)]
    download_jars([JAR], tmp_path, Silence())
    assert files_in(tmp_path) == [PATH]
    assert (tmp_path / PATH).read_bytes() == CONTENT
    assert repository.asked == [f"/{PATH}"]


@pytest.mark.parametrize(
    "bad", [(500, b""), (200, CONTENT[:-1] + b"!"), (200, CONTENT[:1000]), (404, b"")]
)
def test_bad_luck_is_tried_again(
    repository: Repository, tmp_path: Path, bad: tuple[int, bytes]
) -> None:
    repository.answers = [bad, (200, CONTENT)]
    download_jars([JAR], tmp_path, Silence())
    assert (tmp_path / PATH).read_bytes() == CONTENT


def test_another_jar_than_the_pinned_one_never_enters_the_cache(
    repository: Repository, tmp_path: Path
) -> None:
    repository.answers = [(200, b"x" * JAR.bytes)] * 3
    with pytest.raises(SandboxError, match=r"org\.example:thing:1\.0 .*not the pinned jar"):
        download_jars([JAR], tmp_path, Silence())
    assert files_in(tmp_path) == []


def test_what_has_arrived_stays_when_another_jar_fails(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler.sandbox.jars, "CONNECTIONS", 1)
    repository.answers = [(200, CONTENT), *[(404, b"")] * 3]
    missing = Jar("org.example:missing:1.0", 1, "0" * 64)
    with pytest.raises(SandboxError, match=r"cannot download org\.example:missing:1\.0"):
        download_jars([JAR, missing], tmp_path, Silence())
    assert files_in(tmp_path) == [PATH]


def test_progress_counts_the_bytes(repository: Repository, tmp_path: Path) -> None:
    class Ear(Silence):
        heard: tuple[int, int] = (0, 0)

        def count(self, done: int, total: int) -> None:
            self.heard = (done, total)

    repository.answers = [(200, CONTENT[:1000]), (200, CONTENT)]
    ear = Ear()
    download_jars([JAR], tmp_path, ear)
    assert ear.heard == (JAR.bytes, JAR.bytes)


@pytest.fixture
def one_jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Pin nothing but JAR, and return an empty local Maven repository."""
    monkeypatch.setattr("reconciler.sandbox.jars.locked_jars", lambda _: (JAR,))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
    (tmp_path / "m2" / PATH).parent.mkdir(parents=True)
    return tmp_path / "m2"


def test_a_jar_of_the_local_maven_repository_is_used(repository: Repository, one_jar: Path) -> None:
    (one_jar / PATH).write_bytes(CONTENT)
    (cached,) = fetch_jars("any", Silence())
    assert cached.read_bytes() == CONTENT
    assert not cached.is_relative_to(one_jar)
    assert repository.asked == []


def test_a_spoilt_jar_of_the_local_maven_repository_is_not(
    repository: Repository, one_jar: Path
) -> None:
    (one_jar / PATH).write_bytes(b"x" * JAR.bytes)
    repository.answers = [(200, CONTENT)]
    (cached,) = fetch_jars("any", Silence())
    assert cached.read_bytes() == CONTENT


def test_a_cached_jar_is_not_asked_for_again(repository: Repository, one_jar: Path) -> None:
    repository.answers = [(200, CONTENT)]
    assert fetch_jars("any", Silence()) == fetch_jars("any", Silence())
    assert repository.asked == [f"/{PATH}"]


def test_two_who_need_the_same_jar_download_it_once(repository: Repository, one_jar: Path) -> None:
    repository.answers = [(200, CONTENT)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: fetch_jars("any", Silence()), range(2))
    assert first == second
    assert len(repository.asked) == 1


def test_a_cut_off_file_in_the_cache_is_replaced(repository: Repository, one_jar: Path) -> None:
    repository.answers = [(200, CONTENT), (200, CONTENT)]
    (cached,) = fetch_jars("any", Silence())
    cached.write_bytes(CONTENT[:10])
    (cached,) = fetch_jars("any", Silence())
    assert cached.read_bytes() == CONTENT


def spoil(cached: Path) -> None:
    """Change a byte of a file, and let its size and time be what they were."""
    before = cached.stat()
    cached.write_bytes(CONTENT[:-1] + b"!")
    os.utime(cached, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (cached.stat().st_size, cached.stat().st_mtime_ns) == (
        before.st_size,
        before.st_mtime_ns,
    )


def test_a_cached_jar_of_the_right_size_and_other_content_is_replaced(
    repository: Repository, one_jar: Path
) -> None:
    repository.answers = [(200, CONTENT), (200, CONTENT)]
    (cached,) = fetch_jars("any", Silence())
    spoil(cached)
    (cached,) = fetch_jars("any", Silence())
    assert cached.read_bytes() == CONTENT
    assert len(repository.asked) == 2
