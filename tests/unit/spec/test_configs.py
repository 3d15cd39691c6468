"""Topic configs: spelling, ranges, versions and the rules across keys, one message each."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import Location
from reconciler.spec.catalogue import LINES, every_key, load_release, spell_line
from reconciler.spec.config_docs import DOCS, Dimension
from reconciler.spec.configs import MAX_VALUE_BYTES, choose_catalogue

HERE = Location("topics/a.yaml", 5, 17)
NEWEST = choose_catalogue()


def find(key: str, value: object, version: str | None = None) -> str:
    """Return the one finding that a value has, as people see it, without its place."""
    findings = choose_catalogue(version).normalise(key, value, HERE)
    assert isinstance(findings, list)
    (finding,) = findings
    assert finding.where == HERE
    return str(finding).removeprefix(f"{HERE}: ")


@pytest.mark.parametrize(
    ("key", "value", "spelled"),
    [
        ("retention.ms", 604800000, "604800000"),
        ("retention.ms", "604800000", "604800000"),
        ("retention.ms", "7d", "604800000"),
        ("retention.ms", " -1\t", "-1"),
        ("retention.ms", "-0", "0"),
        ("retention.bytes", -5, "-5"),
        ("retention.bytes", "1 TiB", "1099511627776"),
        ("flush.messages", 9223372036854775807, "9223372036854775807"),
        ("segment.bytes", "1GiB", "1073741824"),
        ("segment.bytes", 2147483647, "2147483647"),
        ("compression.gzip.level", -1, "-1"),
        ("compression.gzip.level", 9, "9"),
        ("compression.zstd.level", -131072, "-131072"),
        ("min.cleanable.dirty.ratio", 1, "1.0"),
        ("min.cleanable.dirty.ratio", "0.50", "0.5"),
        ("min.cleanable.dirty.ratio", 0.2, "0.2"),
        ("min.cleanable.dirty.ratio", ".5", "0.5"),
        ("min.cleanable.dirty.ratio", "0.001", "0.001"),
        ("min.cleanable.dirty.ratio", "0.00012", "1.2E-4"),
        ("min.cleanable.dirty.ratio", "1e-10", "1.0E-10"),
        ("min.cleanable.dirty.ratio", 0, "0.0"),
        ("preallocate", True, "true"),
        ("preallocate", " FALSE ", "false"),
        ("cleanup.policy", "compact , delete", "compact,delete"),
        ("cleanup.policy", ["compact", "delete"], "compact,delete"),
        ("cleanup.policy", "delete,delete", "delete"),
        ("cleanup.policy", "", ""),
        ("cleanup.policy", [], ""),
        ("compression.type", "gzip ", "gzip"),
    ],
)
def test_a_value_is_spelled_as_the_broker_reports_it(key: str, value: object, spelled: str) -> None:
    assert NEWEST.normalise(key, value, HERE) == spelled


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("retention.ms", -2, "retention.ms -2 is below -1; use -1 or more [config-range]"),
        (
            "retention.ms",
            "9" * 30,
            f"retention.ms '{'9' * 30}' is above 9223372036854775807; use -1 or more "
            "[config-range]",
        ),
        (
            "segment.bytes",
            "1KiB",
            "segment.bytes 1KiB (1024) is below 1048576; use 1048576 or more [config-range]",
        ),
        (
            "segment.bytes",
            "3TiB",
            "segment.bytes 3TiB (3298534883328) is above 2147483647; use 1048576 or more "
            "[config-range]",
        ),
        (
            "compression.gzip.level",
            0,
            "compression.gzip.level 0 is below 1; use 1 to 9, or -1 [config-range]",
        ),
        (
            "min.cleanable.dirty.ratio",
            "1.01",
            "min.cleanable.dirty.ratio '1.01' is above 1; use 0 to 1 [config-range]",
        ),
        (
            "min.cleanable.dirty.ratio",
            "50%",
            "min.cleanable.dirty.ratio needs a decimal number, not '50%'; write 0.5 [config-type]",
        ),
        (
            "min.cleanable.dirty.ratio",
            "NaN",
            "min.cleanable.dirty.ratio needs a decimal number, not 'NaN'; use 0 to 1 [config-type]",
        ),
        (
            "retention.ms",
            "012",
            "retention.ms needs a plain whole number, not '012'; write 12 [config-type]",
        ),
        (
            "retention.ms",
            "+5",
            "retention.ms needs a plain whole number, not '+5'; write 5 [config-type]",
        ),
        (
            "retention.ms",
            "1_000",
            "retention.ms needs a plain whole number, not '1_000'; write 1000 [config-type]",
        ),
        (
            "retention.ms",
            "0x10",
            "retention.ms needs a plain whole number, not '0x10'; write 16 [config-type]",
        ),
        (
            "retention.ms",
            "0o17",
            "retention.ms needs a plain whole number, not '0o17'; write 15 [config-type]",
        ),
        (
            "retention.ms",
            1.0,
            "retention.ms needs a plain whole number, not '1.0'; write 1 [config-type]",
        ),
        (
            "retention.ms",
            "1e3",
            "retention.ms needs a plain whole number, not '1e3'; write 1000 [config-type]",
        ),
        (
            "min.insync.replicas",
            "1.5",
            "min.insync.replicas needs a plain whole number, not '1.5'; use 1 or more "
            "[config-type]",
        ),
        (
            "min.insync.replicas",
            "2KiB",
            "min.insync.replicas needs a whole number without a unit, not '2KiB'; use 1 or more "
            "[config-type]",
        ),
        (
            "retention.ms",
            "1y",
            "retention.ms: '1y' is not accepted: 'y' has no fixed length; write 365d [config-unit]",
        ),
        (
            "retention.ms",
            "long",
            "retention.ms: 'long' is not a duration; "
            "write a whole number and one of ms, s, m, min, h, d, w [config-type]",
        ),
        ("preallocate", "yes", "preallocate is true or false, not 'yes'; write true [config-type]"),
        ("preallocate", 0, "preallocate is true or false, not '0'; write false [config-type]"),
        (
            "preallocate",
            "maybe",
            "preallocate is true or false, not 'maybe'; write true or false [config-type]",
        ),
        (
            "cleanup.policy",
            "compact,",
            "cleanup.policy does not accept ''; use compact or delete [config-choice]",
        ),
        (
            "cleanup.policy",
            "Compact",
            "cleanup.policy does not accept 'Compact'; use compact or delete; "
            "did you mean compact? [config-choice]",
        ),
        (
            "cleanup.policy",
            ["compact,delete"],
            "cleanup.policy has an item 'compact,delete' that is empty or contains a comma; "
            "write each item separately [config-type]",
        ),
        (
            "compression.type",
            "none",
            "compression.type does not accept 'none'; "
            "use uncompressed, zstd, lz4, snappy, gzip or producer; "
            "did you mean uncompressed? [config-choice]",
        ),
        (
            "compression.type",
            ["zstd"],
            "compression.type needs one value, not a list; write one [config-type]",
        ),
        (
            "compression.type",
            {"a": 1},
            "compression.type needs a plain value, not a map; write one value [config-type]",
        ),
        (
            "cleanup.policy",
            [["delete"]],
            "cleanup.policy needs a plain value, not a list; write one value [config-type]",
        ),
        (
            "retention.ms",
            None,
            "retention.ms has no value, and Kafka does not accept an empty one; "
            "write a value, or remove the key [config-null]",
        ),
        (
            "internal.segment.bytes",
            1048576,
            "internal.segment.bytes is internal to Kafka's own tests: brokers accept it and never "
            "show it; remove it from the spec [config-internal]",
        ),
        (
            "leader.replication.throttled.replicas",
            "*",
            "leader.replication.throttled.replicas is not managed: it belongs to the tools that "
            "move partitions, which set and clear it; remove it from the spec "
            "[config-not-managed]",
        ),
        (
            "retention_ms",
            1,
            "Kafka 4.4 has no topic config 'retention_ms'; did you mean retention.ms? "
            "[config-unknown]",
        ),
        (
            "log.retention.hours",
            1,
            "Kafka 4.4 has no topic config 'log.retention.hours'; did you mean retention.ms? "
            "[config-unknown]",
        ),
        (
            "colour",
            "red",
            "Kafka 4.4 has no topic config 'colour'; remove it from the spec, or list it in "
            "known_configs if the service has it [config-unknown]",
        ),
        (
            "message.format.version",
            "3.0-IV1",
            "message.format.version is known up to Kafka 3.9, and not to 4.4; remove it from "
            'the spec, or write kafka_version: "3.9" if the cluster runs that [config-unknown]',
        ),
    ],
)
def test_a_bad_value_has_one_finding_with_the_way_out(
    key: str, value: object, message: str
) -> None:
    assert find(key, value) == message


def test_a_value_longer_than_the_wire_carries_is_refused() -> None:
    assert NEWEST.normalise("retention.ms", " " * (MAX_VALUE_BYTES - 1) + "1", HERE) == "1"
    assert find("retention.ms", " " * MAX_VALUE_BYTES + "1") == (
        "retention.ms has a value of 32768 bytes, and brokers read 32767; shorten it "
        "[config-too-long]"
    )


@pytest.mark.parametrize(
    ("version", "key", "value", "expected"),
    [
        ("4.0", "segment.bytes", 14, "14"),
        ("4.0.2", "segment.bytes", 13, "segment.bytes 13 is below 14; use 14 or more"),
        ("4.1", "segment.bytes", 1000, "segment.bytes 1000 is below 1048576"),
        ("4.4.0", "remote.copy.lag.ms", "1h", "3600000"),
        (
            "4.3",
            "remote.copy.lag.ms",
            "1h",
            "remote.copy.lag.ms is known from Kafka 4.4 on, and not to 4.3",
        ),
        ("3.9", "message.format.version", "3.0-IV1", "3.0-IV1"),
        ("3.9", "message.format.version", "0.10", "use one from 0.8.0 to 4.0-IV1"),
        ("3.9", "message.format.version", "3.0.", "use one from 0.8.0 to 4.0-IV1"),
        ("3.9", "message.format.version", "4.0", "use one from 0.8.0 to 4.0-IV1"),
        ("3.9", "message.format.version", "2.9", "use one from 0.8.0 to 4.0-IV1"),
        ("3.9", "message.format.version", "9", "use one from 0.8.0 to 4.0-IV1"),
    ],
)
def test_each_version_has_its_own_configs(
    version: str, key: str, value: object, expected: str
) -> None:
    result = choose_catalogue(version).normalise(key, value, HERE)
    assert result == expected or expected in str(result[0])


@pytest.mark.parametrize("release", ["2.8", "3.0", "3.9", "3.9.2", "0.10.2", "0.10.2.1"])
def test_a_record_format_may_be_the_release_it_came_with(release: str) -> None:
    assert choose_catalogue("3.9").normalise("message.format.version", release, HERE) == release


@pytest.mark.parametrize(
    ("version", "line", "note"),
    [
        (None, "4.4", ""),
        ("4.1", "4.1", ""),
        ("4.1.7", "4.1", ""),
        ("5.0", "4.4", "Kafka 5.0 has no catalogue here: configs are checked as 4.4's"),
        ("4.10", "4.4", "Kafka 4.10 has no catalogue here: configs are checked as 4.4's"),
        ("3.2", "3.9", "Kafka 3.2 has no catalogue here: configs are checked as 3.9's"),
    ],
)
def test_a_version_picks_its_catalogue(version: str | None, line: str, note: str) -> None:
    assert (choose_catalogue(version).version, choose_catalogue(version).note) == (line, note)


@pytest.mark.parametrize("version", ["", "four", "4", "4.1-IV0", "v4.1", " 4.1"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match=r"is not a Kafka version such as 4\.4"):
        choose_catalogue(version)


TIERED = {"remote.storage.enable": "true"}
NOTHING_COPIED = TIERED | {"remote.log.copy.disable": "true"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"min.compaction.lag.ms": "60000", "max.compaction.lag.ms": "5000"},
            "min.compaction.lag.ms 1min (60000) exceeds max.compaction.lag.ms 5s (5000); "
            "lower the first or raise the second [config-lag-pair]",
        ),
        (
            TIERED | {"cleanup.policy": "compact,delete"},
            "remote.storage.enable needs cleanup.policy delete, which is compact,delete; "
            "set cleanup.policy to delete, or remote.storage.enable to false "
            "[tiered-needs-delete]",
        ),
        (
            TIERED | {"retention.ms": "1000", "local.retention.ms": "1001"},
            "local.retention.ms 1001 keeps more than retention.ms 1s (1000); "
            "use -2, which follows retention.ms, or 0 to 1000 [tiered-local-retention]",
        ),
        (
            TIERED | {"retention.bytes": "0", "local.retention.bytes": "-1"},
            "local.retention.bytes -1 keeps more than retention.bytes 0; "
            "use -2, which follows retention.bytes, or 0 to 0 [tiered-local-retention]",
        ),
        (
            NOTHING_COPIED | {"local.retention.ms": "1000"},
            "remote.log.copy.disable is true and local.retention.ms 1s (1000) is not "
            "retention.ms; use -2 or 604800000: nothing is copied any more "
            "[tiered-copy-disabled]",
        ),
        (
            TIERED | {"local.retention.ms": "1000", "remote.copy.lag.ms": "1001"},
            "remote.copy.lag.ms 1001 exceeds local.retention.ms 1s (1000), so records go "
            "uncopied; use at most 1000 [tiered-copy-lag]",
        ),
        (
            TIERED | {"retention.bytes": "1000", "remote.copy.lag.bytes": "1001"},
            "remote.copy.lag.bytes 1001 exceeds retention.bytes 1000, so records go uncopied; "
            "use at most 1000 [tiered-copy-lag]",
        ),
    ],
)
def test_keys_that_contradict_each_other_have_a_finding(
    config: Mapping[str, str], message: str
) -> None:
    (finding,) = NEWEST.check_together(config, lambda _: HERE)
    assert str(finding) == f"{HERE}: {message}"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"},
        {"cleanup.policy": "compact", "local.retention.ms": "-1"},
        TIERED,
        TIERED | {"cleanup.policy": ""},
        TIERED | {"retention.ms": "1000", "local.retention.ms": "1000"},
        TIERED | {"retention.ms": "-1", "local.retention.ms": "-1"},
        TIERED | {"retention.bytes": "-5", "local.retention.bytes": "-1"},
        TIERED | {"remote.copy.lag.ms": "-1", "remote.copy.lag.bytes": "-1"},
        TIERED | {"retention.ms": "-1", "remote.copy.lag.ms": "99"},
        NOTHING_COPIED,
        NOTHING_COPIED | {"retention.ms": "1000", "local.retention.ms": "1000"},
    ],
)
def test_keys_that_hold_together_have_none(config: Mapping[str, str]) -> None:
    assert NEWEST.check_together(config, lambda _: HERE) == []


@pytest.mark.parametrize(("version", "rules"), [("4.0", 0), ("4.1", 1), ("4.2", 0)])
def test_an_empty_policy_is_tiered_on_all_lines_but_one(version: str, rules: int) -> None:
    config = TIERED | {"cleanup.policy": ""}
    assert len(choose_catalogue(version).check_together(config, lambda _: HERE)) == rules


def test_a_finding_across_keys_points_at_the_key_to_change() -> None:
    config = {"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"}
    places = {"min.compaction.lag.ms": HERE}
    assert NEWEST.check_together(config, places.get)[0].where == HERE


@pytest.mark.parametrize(
    ("key", "a", "b", "same"),
    [
        ("cleanup.policy", "compact,delete", "delete,compact", True),
        ("cleanup.policy", "delete,delete", "delete", True),
        ("cleanup.policy", "", "delete", False),
        ("min.cleanable.dirty.ratio", "1.0E-4", "0.0001", True),
        ("min.cleanable.dirty.ratio", "0.5", "0.6", False),
        ("retention.ms", "1", "1", True),
        ("retention.ms", "1", "2", False),
        ("retention.ms", None, "1", False),
        ("unheard.of", "a,b", "b,a", False),
        ("unheard.of", None, None, True),
        ("unheard.of", "TRUE", "true", True),
        ("unheard.of", "True", "false", False),
        ("unheard.of", "Text", "text", False),
    ],
)
def test_same_means_the_same_to_a_broker(
    key: str, a: str | None, b: str | None, same: bool
) -> None:
    assert NEWEST.same(key, a, b) is same


def test_the_default_of_a_key_is_the_release_s_own() -> None:
    key = "message.timestamp.after.max.ms"
    assert [choose_catalogue(v).default(key) for v in ("3.9", "4.0")] == [str(2**63 - 1), "3600000"]
    assert NEWEST.default("unheard.of") is None


def test_only_lists_are_lists() -> None:
    assert NEWEST.is_list("cleanup.policy")
    assert not NEWEST.is_list("compression.type")
    assert not NEWEST.is_list("unheard.of")


@pytest.mark.parametrize("line", LINES, ids=spell_line)
def test_every_public_config_is_described_and_measured(line: tuple[int, int]) -> None:
    public = {name for name, key in load_release(line).keys.items() if not key.internal}
    assert public <= DOCS.keys()


def test_nothing_is_described_that_no_release_knows() -> None:
    assert DOCS.keys() <= every_key().keys()


def test_a_schema_for_all_lines_takes_what_any_line_takes() -> None:
    assert every_key()["segment.bytes"].minimum == 14
    assert every_key()["retention.bytes"].minimum is None


@pytest.mark.parametrize("line", LINES, ids=spell_line)
def test_every_default_is_its_own_normal_spelling(line: tuple[int, int]) -> None:
    known = choose_catalogue(spell_line(line))
    for name in known.settable:
        assert known.normalise(name, known.keys[name].default, None) == known.keys[name].default


@pytest.mark.parametrize("name", NEWEST.settable)
def test_a_dimension_fits_its_type(name: str) -> None:
    whole = {"INT", "LONG"}
    types = {
        Dimension.DURATION: whole,
        Dimension.SIZE: whole,
        Dimension.COUNT: whole,
        Dimension.LEVEL: whole,
        Dimension.RATIO: {"DOUBLE"},
        Dimension.FLAG: {"BOOLEAN"},
        Dimension.CHOICE: {"STRING"},
        Dimension.CHOICES: {"LIST"},
    }
    dimension = NEWEST.dimension(name)
    assert dimension is not None
    assert NEWEST.keys[name].type in types[dimension]


SCALARS = (
    st.text(max_size=20)
    | st.text("0123456789.+-eE dhmswyKiMGTB_x,", max_size=12)
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.sampled_from(["delete", "compact , delete", "TRUE ", "zstd", " 7 d ", "0.5"])
)


@given(st.sampled_from(NEWEST.settable), SCALARS | st.lists(SCALARS, max_size=3))
def test_what_is_normal_stays_as_it_is(key: str, value: object) -> None:
    spelled = NEWEST.normalise(key, value, HERE)
    if isinstance(spelled, str):
        assert NEWEST.normalise(key, spelled, HERE) == spelled
    else:
        assert all(finding.way_out for finding in spelled)


@given(st.floats(min_value=0, max_value=1))
def test_a_ratio_keeps_its_value(ratio: float) -> None:
    spelled = NEWEST.normalise("min.cleanable.dirty.ratio", ratio, HERE)
    assert isinstance(spelled, str)
    assert float(spelled) == ratio


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("retention.ms", "-1", -1),
        ("min.cleanable.dirty.ratio", "0.5", 0.5),
        ("preallocate", "false", False),
        ("cleanup.policy", "compact,delete", ["compact", "delete"]),
        ("compression.type", "zstd", "zstd"),
        ("retention.ms", "for ever", "for ever"),
        ("no.such", "1", "1"),
    ],
)
def test_a_value_is_interpreted_as_what_it_is(key: str, text: str, value: object) -> None:
    found = choose_catalogue(None).interpret(key, text)
    assert (found, type(found)) == (value, type(value))
