"""Validation and brokers agree on whole configs, whose keys may contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
from config_values import WHOLE, odd_values
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import Finding
from reconciler.rulebook import STAGES
from reconciler.spec.catalogue import ConfigKey, ConfigType
from reconciler.spec.configs import Catalogue

if TYPE_CHECKING:
    from judge import Judge

EXAMPLES = 150
MAPS_AN_EXAMPLE = 10

pytestmark = pytest.mark.cluster


@pytest.mark.slow
def test_validation_and_broker_agree_on_whole_configs(judge: Judge) -> None:
    """Compare verdicts on generated maps, among them the rules across keys."""
    known = judge.known
    seen: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
    @given(st.lists(whole_configs(known), min_size=MAPS_AN_EXAMPLE, max_size=MAPS_AN_EXAMPLE))
    def agree(configs: list[dict[str, str]]) -> None:
        checked = [check_config(known, config) for config in configs]
        verdicts = judge.judge([(f"m{n}", sent) for n, (sent, _) in enumerate(checked)])
        for (sent, findings), why in zip(checked, verdicts, strict=True):
            assert bool(findings) == bool(why), (sent, why, findings)
            seen.update(finding.rule for finding in findings)
            seen["accepted"] += not why

    agree()
    cannot_be = {"tiered-copy-lag"} if known.line < (4, 4) else set()
    assert seen.keys() >= {*RULES_ACROSS, "config-range", "accepted"} - cannot_be


def check_config(
    known: Catalogue, config: Mapping[str, str]
) -> tuple[dict[str, str], list[Finding]]:
    """Return what would be sent of a map, and everything that validation has to say of it."""
    sent = dict(config)
    findings: list[Finding] = []
    for key, value in config.items():
        spelled = known.normalise(key, value, None)
        if isinstance(spelled, str):
            sent[key] = spelled
        else:
            findings += spelled
    return sent, findings or known.check_together(sent, lambda _: None)


RULES_ACROSS = {
    rule.id
    for rule in STAGES["configs"]
    if rule.id.startswith("tiered-") or rule.id == "config-lag-pair"
}
TOGETHER = (
    "cleanup.policy",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "min.compaction.lag.ms",
    "remote.copy.lag.bytes",
    "remote.copy.lag.ms",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "retention.bytes",
    "retention.ms",
)


@st.composite
def whole_configs(draw: st.DrawFn, known: Catalogue) -> dict[str, str]:
    """Generate a map of good values under keys that have to do with each other, and some more.

    One map in four takes up any value, good or bad.
    """
    others = [name for name in known.settable if name not in TOGETHER]
    names = [name for name in TOGETHER if name in known.keys and draw(st.booleans())]
    config = {name: draw(good_values(known.keys[name])) for name in names}
    config["remote.storage.enable"] = draw(st.sampled_from(["true", "true", "false"]))
    if draw(st.sampled_from([True, False, False, False])):
        name = draw(st.sampled_from([*names, *others]))
        config[name] = draw(st.sampled_from(odd_values(known.keys[name])))
    return config


def good_values(key: ConfigKey) -> st.SearchStrategy[str]:
    """Generate values in a config's range; numbers are small, so that they meet."""
    if key.type in WHOLE:
        least = -3 if key.minimum is None else key.minimum
        near = st.integers(least, min(least + 6, key.maximum or least + 6)).map(str)
        return near | st.sampled_from([key.default or "0", *map(str, key.also)])
    if key.type is ConfigType.DOUBLE:
        return st.floats(0, 1).map(str)
    if key.type is ConfigType.BOOLEAN:
        return st.sampled_from(["true", "false"])
    if key.type is ConfigType.LIST:
        return st.lists(st.sampled_from(key.choices), max_size=3).map(",".join)
    return st.sampled_from(key.choices)
