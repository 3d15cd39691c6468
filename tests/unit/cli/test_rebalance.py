"""What a rebalance aims at: the options, then the cluster, then replicas within 10 %."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.app import run

ESTATE = """\
version: 1
clusters:
  prod:
    moves: {allow: [rebalance], rate: unlimited, keep_free: 0%}
"""


@pytest.fixture(autouse=True)
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two brokers hold four topics, the first of which is large; two are empty."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "clusters.yaml").write_text(ESTATE)
    topics = [
        {
            "name": f"t{number}",
            "topic_id": f"id{number}",
            "partitions": [[1, 2]],
            "in_sync": [[1, 2]],
            "size_bytes": [1000 if number == 0 else 10],
            "write_bytes_per_s": [10],
        }
        for number in range(4)
    ]
    directory = {"path": "/data", "total_bytes": 10**9, "usable_bytes": 10**9, "replicas": 0}
    brokers = [{"id": number, "log_directories": [directory]} for number in (1, 2, 3, 4)]
    snapshot = {
        "format_version": "1.0",
        "cluster_id": "one",
        "brokers": brokers,
        "topics": topics,
    }
    (tmp_path / "s.json").write_text(json.dumps(snapshot))


def plan(*options: str) -> Any:
    asked = ["rebalance", "--cluster", "prod", "--against", "s.json", "--out", "plan.json"]
    assert run([*asked, *options]) == 0
    return json.loads(Path("plan.json").read_text())["moves"]


def test_without_an_aim_replicas_come_within_ten_percent_of_their_share() -> None:
    moves = plan()
    assert [band["by"] for band in moves["balance"]["bands"]] == ["count", "count"]
    assert moves["balance"]["within_percent"] == 10
    assert moves["made_by"] == "rebalance --by count --within 10%"


def test_the_cluster_says_what_it_aims_at_and_options_win() -> None:
    with Path("topics/clusters.yaml").open("a") as file:
        file.write("    balance: {by: [disk, write], within: 5%}\n")
    moves = plan()
    assert [band["by"] for band in moves["balance"]["bands"]] == ["disk", "write", "write"]
    assert moves["made_by"] == "rebalance --by disk,write --within 5%"
    assert plan("--within", "20%")["made_by"] == "rebalance --by disk,write --within 20%"
    moves = plan("--by", "count", "--leaders-only")
    assert [band["of_leaders"] for band in moves["balance"]["bands"]] == [True]
    assert moves["made_by"] == "rebalance --by count --within 5% --leaders-only"


def test_every_topic_even_is_asked_for_by_name() -> None:
    moves = plan("--even-topics")
    assert "balance" not in moves
    assert moves["made_by"] == "rebalance --even-topics"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--by", "bytes"], "'bytes' is none of count, disk, write, read"),
        (["--within", "0%"], "'0%' is not from 1% to 100%"),
        (["--within", "much"], "'much' is not from 1% to 100%"),
        (["--even-topics", "--by", "disk"], "--even-topics does not go with --by"),
        (["--even-topics", "--within", "5%"], "--even-topics does not go with --within"),
        (["--offline-replicas", "--leaders-only"], "does not go with --leaders-only"),
        (["--by", "disk", "--leaders-only"], "bytes on disk do not move with leaders"),
        (["--by", "read"], "no read_bytes_per_s is known of any partition"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["rebalance", "--cluster", "prod", "--against", "s.json", *options]
    assert run(asked) != 0
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_broker_outside_is_drawn_with_what_stays_goes_and_comes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["rebalance", "--cluster", "prod", "--against", "s.json"]
    assert run([*asked, "--by", "count"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        "by replicas: 4 brokers are more than 10 % off the share · all within 5 % afterwards"
        in lines
    )
    assert "broker 1: ████████████|░░░░░░░░░░░ 4 (+100 %) → 2 (+0 %)" in lines
    assert "broker 3: ▓▓▓▓▓▓▓▓▓▓▓▓|··········· 0 (-100 %) → 2 (+0 %)" in lines


def test_a_cluster_near_its_shares_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rebalance", "--cluster", "prod", "--against", "s.json", "--over", "80%"]) == 0
    head, *_, closing, why = capsys.readouterr().out.splitlines()
    assert head == "prod · one · 4 brokers · 4 topics"
    assert closing.startswith("No changes. 4 topics")
    assert why == "by disk: every broker is at most 80 % full"


def measure(seconds: int, *, guessed: bool = False, committed: bool = False) -> None:
    """Make the snapshot one whose rates were measured."""
    snapshot = json.loads(Path("s.json").read_text())
    snapshot["measured_s"] = seconds
    for topic in snapshot["topics"]:
        topic["read_bytes_per_s"] = [7]
        topic["guessed_rates"] = [0] if guessed else []
    if committed:
        snapshot["committed_offsets"] = {"billing": {"t0": [9]}}
    Path("s.json").write_text(json.dumps(snapshot))


def list_measured(*options: str) -> list[tuple[str, str]]:
    plan(*options)
    notes = json.loads(Path("plan.json").read_text())["notes"]
    return [(n["what"], n["way_out"]) for n in notes if n["rule"] == "rates-measured"]


def test_a_plan_by_rates_says_over_what_time_they_were_measured() -> None:
    assert list_measured("--by", "write") == []  # from monitoring: nothing is known of it
    measure(10)
    little = "that is little: measure for longer with snapshot --measure 10m"
    assert list_measured("--by", "write") == [("writes were measured over 10 s", little)]
    assert list_measured("--by", "disk") == []
    measure(7200, guessed=True)
    assert list_measured("--by", "write,read") == [
        (
            "writes were measured over 2 h; the rates of 4 partitions are guesses: their logs "
            "lost records meanwhile, or are compacted",
            "",
        )
    ]
    snapshot = json.loads(Path("s.json").read_text())
    for topic in snapshot["topics"][1:]:
        topic["guessed_rates"] = []
    Path("s.json").write_text(json.dumps(snapshot))
    ((what, _),) = list_measured("--by", "write")
    assert what.endswith(
        "the rate of 1 partition is a guess: its log lost records meanwhile, or is compacted"
    )
    measure(7200, committed=True)
    assert list_measured("--by", "read") == [
        (
            "reads are guesses, from what groups committed over 2 h: consumers that do not commit "
            "are not counted, and reads from followers count for leaders",
            "",
        )
    ]


def test_what_hides_groups_is_said_where_reads_matter(capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = json.loads(Path("s.json").read_text())
    note = {"rule": "groups-unseen", "what": "rates of reads are unknown: x", "severity": "note"}
    Path("s.json").write_text(json.dumps({**snapshot, "notes": [note]}))
    asked = ["rebalance", "--cluster", "prod", "--against", "s.json"]
    assert run([*asked, "--by", "read"]) != 0
    assert "rates of reads are unknown: x" in capsys.readouterr().err
    assert run([*asked, "--by", "write"]) == 0
    assert "rates of reads" not in capsys.readouterr().out
    assert run(["plan", "--cluster", "prod", "--against", "s.json", "--by", "write"]) == 0
    assert "rates of reads" not in capsys.readouterr().out


def test_a_plan_that_weighs_by_rates_says_the_time_too(capsys: pytest.CaptureFixture[str]) -> None:
    measure(600)
    asked = ["plan", "--cluster", "prod", "--against", "s.json"]
    assert run([*asked, "--by", "write"]) == 0
    assert "writes were measured over 10 min [rates-measured]" in capsys.readouterr().out
    assert run(asked) == 0
    assert "rates-measured" not in capsys.readouterr().out


class TestDirectories:
    """A broker with three log directories, the first of which holds nearly everything."""

    @pytest.fixture(autouse=True)
    def uneven(self) -> None:
        snapshot = json.loads(Path("s.json").read_text())
        first = snapshot["brokers"][0]
        (data,) = first["log_directories"]
        held = {"t0": {"0": 1000}, "t1": {"0": 1000}, "t2": {"0": 1000}}
        first["log_directories"] = [
            {**data, "path": "/a", "stored": held},
            {**data, "path": "/b", "stored": {"t3": {"0": 10}}},
            {**data, "path": "/c"},
        ]
        Path("s.json").write_text(json.dumps(snapshot))

    def test_a_replica_moves_to_another_directory_of_its_broker(self) -> None:
        moves = plan("--disks")
        assert moves["made_by"] == "rebalance --disks --within 10%"
        assert moves["replicas"] == 0
        first, second = moves["directories"]["copies"]
        assert {first["target"], second["target"]} == {"/b", "/c"}
        assert {key: first[key] for key in ("broker", "source", "size_bytes", "partition")} == {
            "broker": 1,
            "source": "/a",
            "size_bytes": 1000,
            "partition": 0,
        }
        (change, _) = json.loads(Path("plan.json").read_text())["resource_changes"]
        assert change["steps"] == ["relocate"]
        assert change["change"]["before"]["directories"] == [
            {"partition": 0, "broker": 1, "path": "/a"}
        ]

    @pytest.mark.parametrize("form", ["text", "markdown"])
    def test_it_is_shown_in_every_form(self, form: str, capsys: pytest.CaptureFixture[str]) -> None:
        asked = ["rebalance", "--cluster", "prod", "--against", "s.json", "--disks"]
        assert run([*asked, "--format", form]) == 0
        out = capsys.readouterr().out.replace("&nbsp;", " ")
        assert "1 replica to other log directories of 1 broker" in out
        assert "partition 0 on broker 1" in out
        assert "2 replicas are copied between log directories of 1 broker, 2.0 KiB" in out
        assert "1 broker with several" in out

    def test_a_directory_is_emptied(self) -> None:
        moves = plan("--empty-dir", "1:/b")
        assert moves["made_by"] == "rebalance --empty-dir 1:/b"
        (copy,) = moves["directories"]["copies"]
        assert (copy["topic"], copy["source"], copy["target"]) == ("t3", "/b", "/c")

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--empty-dir", "/b"], "'/b' is not a log directory of a broker, such as 7:/var"),
            (["--empty-dir", "1:b"], "'1:b' is not a log directory of a broker"),
            (["--disks", "--by", "disk"], "--disks does not go with --by"),
            (["--empty-dir", "1:/a", "--over", "9%"], "--empty-dir does not go with --over"),
            (["--empty-dir", "1:/z"], "broker 1 has no log directory /z; it has /a, /b, /c"),
        ],
    )
    def test_what_cannot_be_asked_for(
        self, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["rebalance", "--cluster", "prod", "--against", "s.json", *options]) == 64
        assert said in " ".join(capsys.readouterr().err.split())


def compare(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    asked = ["rebalance", "--cluster", "prod", "--against", "s.json", "--compare"]
    assert run([*asked, *options]) == 0
    return capsys.readouterr().out


def test_choices_are_shown_side_by_side_and_no_plan_is_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = compare(capsys, "--by", "disk").splitlines()
    assert [line.split("  ")[0] for line in lines[2:14]] == [
        "",
        "rebalance",
        "as it is",
        "--by count",
        "--by disk",
        "--by write",
        "--by disk,write",
        "--even-topics",
        "--by count --leaders-only",
        "--by disk --within 5%",
        "--by disk --within 20%",
        "",
    ]
    cells = {line.split("  ")[0]: line.split() for line in lines[4:13]}
    assert cells["as it is"][-4:] == ["100", "%", "100", "%"]
    assert cells["--by count"][2:5] == ["4", "40", "B"]
    assert max(map(len, compare(capsys, "--by", "disk,write").splitlines())) <= 100
    assert not Path("plan.json").exists()


def test_each_choice_costs_what_its_plan_does(capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(compare(capsys, "--format", "json"))
    choices = {each["options"]: each for each in answer["choices"]}
    for options, found in choices.items():
        moves = plan(*options.split())
        assert found["replicas"] == moves["replicas"], options
        assert found["copied_bytes"] == moves["forecast"]["copied_bytes"], options
        assert found["leader_changes"] == moves["leader_changes"], options
    capsys.readouterr()
    for by in ("count", "write"):
        (band, *_) = plan("--by", by)["balance"]["bands"]
        off = [abs(each["after"] - each["share"]) / each["share"] for each in band["brokers"]]
        assert choices[f"--by {by}"]["farthest"][by] == pytest.approx(max(off))
        off = [abs(each["before"] - each["share"]) / each["share"] for each in band["brokers"]]
        assert answer["farthest"][by] == pytest.approx(max(off))


def test_a_choice_by_what_is_unknown_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    state = json.loads(Path("s.json").read_text())
    for topic in state["topics"]:
        del topic["write_bytes_per_s"]
    Path("s.json").write_text(json.dumps(state))
    lines = compare(capsys).splitlines()
    (by_write,) = [line for line in lines if line.startswith("--by write ")]
    assert by_write.split()[2:] == ["unknown", *"––––––"]
    assert "unknown: no write of any partition is known" in lines


def test_a_comment_compares_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    lines = compare(capsys, "--format", "markdown").splitlines()
    assert lines[0] == "prod · what a rebalance would cost · within 10 % of the share."
    assert any(line.startswith("| `--by count` | 4 | 40 B |") for line in lines)


@pytest.mark.parametrize("option", ["--leaders-only", "--even-topics", "--detailed-exitcode"])
def test_a_comparison_makes_no_plan(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["rebalance", "--cluster", "prod", "--against", "s.json", "--compare", option]
    assert run(asked) == 64
    assert f"--compare does not go with {option}" in capsys.readouterr().err


def test_each_partition_says_from_which_broker_to_which_one_it_moves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["rebalance", "--cluster", "prod", "--against", "s.json"]
    assert run([*asked, "--by", "count"]) == 0
    lines = capsys.readouterr().out.splitlines()
    moved = [line for line in lines if line.startswith("            partition 0 ")]
    copies = [line for line in moved if " · from " in line]
    assert copies
    for line in copies:
        assert re.search(r" · from [12] \(\+100 %\)(, 2 \(\+100 %\))? to [34] \(-100 %\)", line)
    assert run([*asked, "--even-topics"]) == 0
    assert " · from " not in capsys.readouterr().out
    assert run([*asked, "--by", "disk,write"]) == 0
    assert re.search(r"to [34] \(-100 %\)(, 4 \(-100 %\))? by disk\n", capsys.readouterr().out)


def test_many_moves_are_summed_up_by_pairs_of_brokers(capsys: pytest.CaptureFixture[str]) -> None:
    state = json.loads(Path("s.json").read_text())
    rows = [[1, 2]] * 200
    state["topics"] = [
        {"name": "t", "topic_id": "i", "partitions": rows, "in_sync": rows, "size_bytes": [5] * 200}
    ]
    Path("s.json").write_text(json.dumps(state))
    assert run(["rebalance", "--cluster", "prod", "--against", "s.json", "--by", "disk"]) == 0
    out = capsys.readouterr().out
    assert " · from " not in out
    pairs = re.findall(r"^from .*: (\d+) replicas?, (\d+) B$", out, re.MULTILINE)
    replicas = sum(int(number) for number, _ in pairs)
    assert replicas > 100
    assert sum(int(size) for _, size in pairs) == 5 * replicas
    assert f"moves: {replicas} replicas of " in out
