"""`moves status` and `rate`: usage errors, exit codes, refusals, and what is drawn over."""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from readings import LEADER, default, listed, move, rate, reading

from reconciler.cli import screen, terminal
from reconciler.cli.app import run
from reconciler.cli.moves import status
from reconciler.cli.moves.rates import _refuse_standing
from reconciler.errors import ClusterError, Finding, Severity
from reconciler.model.moves import MovesReading
from reconciler.moves.progress import measure_moves

STATUS = ("moves", "status", "--bootstrap-servers", "broker-1:9092")
HIDDEN = Finding("cluster-rights", "rates are hidden", severity=Severity.WARNING)
REMARK = Finding("cluster-rights", "look", severity=Severity.NOTE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name the cluster: --cluster NAME, or --bootstrap-servers HOST:PORT"),
        (("topics",), "ESTATE has several clusters; name one with --cluster NAME"),
        (("topics", "--bootstrap-servers", "b:9092"), "name one with --cluster NAME"),
        (("nowhere", "--cluster", "prod"), "nowhere"),
        (("--bootstrap-servers", "b:9092", "--watch", "0"), "0 is not in the range 1<=x<=3600"),
        (("--bootstrap-servers", "b:9092", "--watch", "soon"), "'soon' is not a valid integer"),
    ],
)
def test_a_usage_error_is_not_an_answer(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["moves", "status", *arguments]) == 64
    assert said in capsys.readouterr().err


def show(monkeypatch: pytest.MonkeyPatch, *readings: MovesReading) -> None:
    """Let these readings be what a cluster shows, one after the other."""
    entry = SimpleNamespace(name="prod-eu")
    connection = nullcontext(SimpleNamespace(entry=entry))
    monkeypatch.setattr("reconciler.cli.moves.target.open_address", lambda _: connection)
    reports = [measure_moves(now) for now in readings]
    monkeypatch.setattr("reconciler.cli.moves.status.watch_moves", lambda *_: iter(reports))


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (reading(), 0),
        (reading(notes=(REMARK,)), 0),
        (reading(notes=(HIDDEN,)), 1),
        (reading(move()), 2),
        (reading(lists=(listed("t", "*"),)), 2),
        (reading(move(), notes=(HIDDEN,)), 2),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_zero_means_that_nothing_is_there_and_all_was_seen(
    now: MovesReading, code: int, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    show(monkeypatch, now)
    assert run([*STATUS, "--format", form]) == code


def test_a_watch_ends_with_the_code_of_its_last_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    show(monkeypatch, reading(move()), reading())
    assert run([*STATUS, "--watch"]) == 0


def test_a_log_has_a_line_for_each_reading(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show(monkeypatch, reading(move()), reading(move()), reading())
    run([*STATUS, "--watch", "3"])
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("rows", [12, 24, 60])
def test_a_screen_holds_what_the_next_reading_replaces(
    rows: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = reading(*(move(partition=n) for n in range(40)), lists=(listed("u", "*"),))
    show(monkeypatch, now, now)
    monkeypatch.setenv("NO_COLOR", "1")
    for module in (status, terminal):
        monkeypatch.setattr(module, "can_redraw", lambda _: True)
    monkeypatch.setattr(screen.shutil, "get_terminal_size", lambda *_: os.terminal_size((80, rows)))
    run([*STATUS, "--watch"])
    first, up, second = re.split(r"\x1b\[(\d+)F\x1b\[J", capsys.readouterr().out)
    drawn = first.removeprefix("\r\x1b[J")
    assert second == drawn
    assert int(up) == sum(-(-max(len(line), 1) // 80) for line in drawn.splitlines())
    assert int(up) < rows


def test_a_text_is_watched_whole_where_it_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show(monkeypatch, reading(move()), reading())
    monkeypatch.setenv("NO_COLOR", "1")
    for module in (status, terminal):
        monkeypatch.setattr(module, "can_redraw", lambda _: True)
    monkeypatch.setattr(screen.shutil, "get_terminal_size", lambda *_: os.terminal_size((80, 40)))
    run([*STATUS, "--watch"])
    assert capsys.readouterr().out.endswith("\n\nNo partition is being moved.\n")


def test_a_rate_that_is_to_stay_is_replaced_only_where_that_is_said() -> None:
    rates = (rate(None, 9, LEADER), rate(None, 9))
    with pytest.raises(ClusterError) as caught:
        _refuse_standing(reading(rates=rates), (None, "prod", None))
    assert str(caught.value) == (
        "the throttle rate of 9B/s was not set by reconciler, and must stay after the moves; add "
        "--permanent to change it, or remove it first: reconciler moves unthrottle --default "
        "--cluster prod [moves-rate-taken]"
    )
    _refuse_standing(reading(rates=default(9)), (None, "prod", None))
