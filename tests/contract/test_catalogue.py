"""Validation and brokers agree on every topic config, one value at a time, on every release line.

What validation accepts the broker accepts, what the broker refuses validation refused first, and
the broker reports each value in our spelling. Where validation is stricter, `STRICTER` says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from catalogue import (
    CATALOGUES,
    build_catalogue,
    define_configs,
    render_catalogue,
    report_configs,
)
from config_values import STRICTER, WITH_UNITS, accepted_values, values_for

from reconciler.spec.configs import MAX_VALUE_BYTES, Catalogue
from reconciler.spec.scalars import split_list

if TYPE_CHECKING:
    from judge import Judge

pytestmark = pytest.mark.cluster


def test_validation_and_broker_agree_on_every_value(judge: Judge) -> None:
    keys = judge.known.keys
    pairs = [(name, value) for name, key in keys.items() for value in values_for(key)]
    spelled = {pair: judge.known.normalise(*pair, None) for pair in pairs}
    verdicts = dict(zip(pairs, judge.judge_values(pairs), strict=True))

    accepted = [(key, text) for (key, _), text in spelled.items() if isinstance(text, str)]
    surprises = dict(zip(accepted, judge.judge_values(accepted), strict=True))
    assert {pair: why for pair, why in surprises.items() if why} == {}

    stricter = [p for p in pairs if not verdicts[p] and not isinstance(spelled[p], str)]
    reasons = {pair: [e for e in STRICTER if e.covers(keys[pair[0]], pair[1])] for pair in stricter}
    assert [pair for pair, entries in reasons.items() if not entries] == []
    used = [entry.why for entries in reasons.values() for entry in entries]
    assert set(used) == {entry.why for entry in STRICTER if judge.known.line in entry.lines}


def test_only_units_make_a_value_that_brokers_alone_would_refuse(judge: Judge) -> None:
    keys = judge.known.keys
    pairs = [(name, value) for name, key in keys.items() for value in values_for(key)]
    ours = [pair for pair in pairs if isinstance(judge.known.normalise(*pair, None), str)]
    verdicts = zip(ours, judge.judge_values(ours), strict=True)
    assert {value for (_, value), why in verdicts if why} == set(WITH_UNITS)


def test_the_broker_reports_each_value_in_our_spelling(judge: Judge) -> None:
    wished: dict[str, dict[str, str]] = {}
    for name in judge.known.settable:
        for number, value in enumerate(accepted_values(judge.known, name)):
            # Apart from the others, for it may not be below min.compaction.lag.ms.
            topic = f"{'lag' if name == 'max.compaction.lag.ms' else 'spelled'}-{number}"
            wished.setdefault(topic, {})[name] = value
    judge.create(wished)
    reported = {
        topic: {key: fold_repeats(judge.known, key, value) for key, value in config.items()}
        for topic, config in judge.report(wished.keys()).items()
    }
    assert reported == {
        topic: {key: judge.known.normalise(key, value, None) for key, value in config.items()}
        for topic, config in wished.items()
    }


def fold_repeats(known: Catalogue, key: str, value: str) -> str:
    """Drop repeated items as brokers do from 4.2 on; older ones report them as they were sent."""
    if known.line >= (4, 2) or not known.is_list(key):
        return value
    assert known.same(key, value, ",".join(reversed(split_list(value))))
    return ",".join(dict.fromkeys(split_list(value)))


def test_a_longer_value_than_the_limit_does_not_arrive(judge: Judge) -> None:
    """Show what validation protects from: the client lets a 16-bit length wrap."""
    too_long = " " * MAX_VALUE_BYTES + "1"
    (why,) = judge.judge_values([("retention.ms", too_long)])
    assert why == "Null value not supported for topic configs: retention.ms"
    (finding,) = judge.known.normalise("retention.ms", too_long, None)
    assert finding.rule == "config-too-long"


def test_the_catalogue_is_what_the_broker_says(judge: Judge) -> None:
    defined, reported = define_configs(judge.release), report_configs(judge.servers)
    written = (CATALOGUES / f"{judge.known.version}.json").read_text("utf-8")
    assert render_catalogue(build_catalogue(judge.release, defined, reported)) == written
