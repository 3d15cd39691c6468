"""Validation and brokers agree on every topic config and every name, release by release.

What validation accepts the broker accepts, what the broker refuses validation refused first, and
the broker reports each value in our spelling. Where validation is stricter, `STRICTER` says why.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.rulebook import RULES
from reconciler.sandbox import start_cluster
from reconciler.sandbox.catalogue import (
    CATALOGUES,
    build_catalogue,
    define_configs,
    render_catalogue,
    report_configs,
)
from reconciler.sandbox.jars import known_releases
from reconciler.spec.catalogue import LINES, ConfigType
from reconciler.spec.configs import MAX_VALUE_BYTES, Catalogue, catalogue
from reconciler.spec.names import INTERNAL, check_name, find_collisions
from reconciler.spec.scalars import TRIMMED, split_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from reconciler.errors import Finding
    from reconciler.spec.catalogue import ConfigKey, Line

DEFAULT_RELEASE = known_releases()[-1]
CONTROLLER_ID = 3000
WHOLE = {ConfigType.INT, ConfigType.LONG}
TOPICS_A_REQUEST = 250
TIMEOUT_S = 60
EXAMPLES = 150
MAPS_AN_EXAMPLE = 10

pytestmark = pytest.mark.cluster


VERDICTS = {
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_REQUEST,
    KafkaError.TOPIC_EXCEPTION,
}


def _read_verdict(error: KafkaException | None) -> str:
    """Return why a broker refuses; an answer that is no verdict on the topic fails the test."""
    if error is None:
        return ""
    assert error.args[0].code() in VERDICTS, error
    return str(error.args[0].str())


@dataclass(frozen=True)
class Broker:
    """A running release, and the catalogue that should agree with it."""

    release: str
    servers: str
    known: Catalogue
    admin: AdminClient

    def judge(self, topics: Sequence[tuple[str, Mapping[str, str]]]) -> list[str]:
        """Return for each topic why the broker would not create it; nothing where it would."""
        reasons: list[str] = []
        for first in range(0, len(topics), TOPICS_A_REQUEST):
            reasons += self._judge_request(topics[first : first + TOPICS_A_REQUEST])
        return reasons

    def _judge_request(self, topics: Sequence[tuple[str, Mapping[str, str]]]) -> list[str]:
        wishes = [NewTopic(name, 1, 1, config=dict(config)) for name, config in topics]
        try:
            answers = self.admin.create_topics(wishes, validate_only=True)
        except KafkaException as error:  # the client itself takes no such request
            assert len(wishes) == 1
            return [str(error)]
        return [_read_verdict(answers[name].exception(TIMEOUT_S)) for name, _ in topics]

    def judge_values(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return for each key and value why the broker would refuse it."""
        return self.judge([(f"v{n}", {key: value}) for n, (key, value) in enumerate(pairs)])

    def create(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """Create topics of one partition, and wait until the broker knows them."""
        wishes = [NewTopic(name, 1, 1, config=dict(config)) for name, config in configs.items()]
        for answer in self.admin.create_topics(wishes).values():
            answer.result(TIMEOUT_S)
        deadline = time.monotonic() + TIMEOUT_S
        while not configs.keys() <= self.admin.list_topics(timeout=TIMEOUT_S).topics.keys():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def report(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return what the broker says each topic's overrides are."""
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        answers = self.admin.describe_configs(resources)
        return {
            resource.name: {
                name: entry.value
                for name, entry in answer.result(TIMEOUT_S).items()
                if entry.source == 1
            }
            for resource, answer in answers.items()
        }


def releases() -> list[object]:
    """Return the default release, and the others behind the slow marker."""
    return [
        pytest.param(release, marks=() if release == DEFAULT_RELEASE else pytest.mark.slow)
        for release in known_releases()
    ]


@pytest.fixture(scope="module", params=releases())
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Start one broker; only its controller, which judges configs, has tiered storage on."""
    tiered = {CONTROLLER_ID: {"remote.log.storage.system.enable": "true"}}
    release = request.param
    with start_cluster(brokers=1, kafka_version=release, broker_properties=tiered) as cluster:
        servers = cluster.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        yield Broker(release, servers, catalogue(release), admin)


WITH_UNITS = ("7d", "7 d", "1GiB", "1B", "1ms", "0s")
ODD_SPELLINGS = (
    *WITH_UNITS,
    *("", " ", " 100 ", "\t1\n", "+5", "+0", "007", "-007", "-0", "--1", "- 1", "1_000", "1,000"),
    *("0x10", "0b1", "0o7", "1e3", "1E3", "1.0", "1.", ".5", "0.5", "0.50", "0.30000000000000004"),
    *("1e-4", "0.001", "0.0009999", "1e-320", "1e400", "-0.0", "+0.5", "0.5d", "0.5F", "0x1p-1"),
    *("NaN", "Infinity", "１", "١", "\u00a01", "1\u00a0", "\u20031", "1 000", "1;2", "null"),
    *("None", "true", "TRUE", " False ", "tRuE", "yes", "no", "on", "ſalse", "truE\u00a0", "1L"),
    *("delete", "Delete", "compact", "compact,delete", "delete , compact", "delete,delete"),
    *("compact,delete,compact", ",", "delete,", ",delete", "delete,,compact", "compact;delete"),
    *("delete\u00a0,compact", "delete\t,\ncompact", "delete\u000b,compact", "none", "*", "0:1"),
    *("0:1,1:2", "0:1,x", "zstd", "ZSTD", "gzip ", "uncompressed", "producer", "zstd,gzip"),
    *("CreateTime", "createtime", "LogAppendTime", "3.0", "3.0-IV1", "2.8-IV1", "2.8", "9.9"),
    *("0.10.0-IV1", "0.10", "3.0-IV9", "3.0.7", "4.0-IV1", "x" * 1_000, "é" * 500),
    *("1GB", "1.5d", "1y", "9" * 400, "-" + "9" * 400, "0" * 400, "0." + "1" * 400),
)


@cache
def values_for(key: ConfigKey) -> list[str]:
    """Return values inside, at and outside a config's range, its choices, and odd spellings."""
    edges = {-3, -2, -1, 0, 1, 2, 3, 100, *key.also}
    for bound in (key.minimum, key.maximum, -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1):
        if bound is not None:
            edges |= {bound - 1, bound, bound + 1}
    own = [*map(str, sorted(edges)), *key.choices, key.default or ""]
    if key.type in WHOLE:
        # As long as the wire carries. Well formed only: a refusal repeats the value, and one that
        # long fails the whole request as UNKNOWN_SERVER_ERROR.
        own.append(" " * (MAX_VALUE_BYTES - 1) + "1")
    return list(dict.fromkeys([*own, *ODD_SPELLINGS]))


@dataclass(frozen=True)
class Stricter:
    """Values that brokers take and validation refuses: which, on which lines, and why so."""

    why: str
    covers: Callable[[ConfigKey, str], bool]
    lines: tuple[Line, ...] = LINES


def _is_plain(key: ConfigKey, text: str, form: str) -> bool:
    return key.type in WHOLE and re.fullmatch(form, text.strip(TRIMMED)) is not None


STRICTER = (
    Stricter(
        "brokers never show it, so it could be neither compared nor found",
        lambda key, _: key.internal,
        lines=tuple(line for line in LINES if line >= (4, 1)),
    ),
    Stricter(
        "the tools that move partitions set and clear it",
        lambda key, _: key.name.endswith(".replication.throttled.replicas"),
    ),
    Stricter(
        "012 is 10 in YAML 1.1 and in shells, and 12 to brokers",
        lambda key, text: _is_plain(key, text, r"-?0[0-9]+"),
    ),
    Stricter(
        "a number is written in one way, without a plus",
        lambda key, text: _is_plain(key, text, r"\+[0-9]+"),
    ),
    Stricter(
        "digits of other scripts look like something else to most readers",
        lambda key, text: key.type in WHOLE and text in {"１", "١"},
    ),
    Stricter(
        "NaN is in no range, though the broker's comparison lets it through",
        lambda key, text: key.type is ConfigType.DOUBLE and text == "NaN",
    ),
    Stricter(
        "suffixes and hexadecimal fractions are Java's own",
        lambda key, text: key.type is ConfigType.DOUBLE and text in {"0.5d", "0.5F", "0x1p-1"},
    ),
    Stricter(
        "a version that is written out says which record format it means",
        lambda key, text: key.name == "message.format.version" and text not in key.choices,
        lines=((3, 9),),
    ),
)


def test_validation_and_broker_agree_on_every_value(broker: Broker) -> None:
    keys = broker.known.keys
    pairs = [(name, value) for name, key in keys.items() for value in values_for(key)]
    spelled = {pair: broker.known.normalise(*pair, None) for pair in pairs}
    verdicts = dict(zip(pairs, broker.judge_values(pairs), strict=True))

    accepted = [(key, text) for (key, _), text in spelled.items() if isinstance(text, str)]
    surprises = dict(zip(accepted, broker.judge_values(accepted), strict=True))
    assert {pair: why for pair, why in surprises.items() if why} == {}

    stricter = [p for p in pairs if not verdicts[p] and not isinstance(spelled[p], str)]
    reasons = {pair: [e for e in STRICTER if e.covers(keys[pair[0]], pair[1])] for pair in stricter}
    assert [pair for pair, entries in reasons.items() if not entries] == []
    used = [entry.why for entries in reasons.values() for entry in entries]
    assert set(used) == {entry.why for entry in STRICTER if broker.known.line in entry.lines}


def test_only_units_make_a_value_that_brokers_alone_would_refuse(broker: Broker) -> None:
    keys = broker.known.keys
    pairs = [(name, value) for name, key in keys.items() for value in values_for(key)]
    ours = [pair for pair in pairs if isinstance(broker.known.normalise(*pair, None), str)]
    verdicts = zip(ours, broker.judge_values(ours), strict=True)
    assert {value for (_, value), why in verdicts if why} == set(WITH_UNITS)


def test_the_broker_reports_each_value_in_our_spelling(broker: Broker) -> None:
    wished: dict[str, dict[str, str]] = {}
    for name in broker.known.settable:
        for number, value in enumerate(accepted_values(broker.known, name)):
            # Apart from the others, for it may not be below min.compaction.lag.ms.
            topic = f"{'lag' if name == 'max.compaction.lag.ms' else 'spelled'}-{number}"
            wished.setdefault(topic, {})[name] = value
    broker.create(wished)
    reported = {
        topic: {key: fold_repeats(broker.known, key, value) for key, value in config.items()}
        for topic, config in broker.report(wished.keys()).items()
    }
    assert reported == {
        topic: {key: broker.known.normalise(key, value, None) for key, value in config.items()}
        for topic, config in wished.items()
    }


def fold_repeats(known: Catalogue, key: str, value: str) -> str:
    """Drop repeated items as brokers do from 4.2 on; older ones report them as they were sent."""
    if known.line >= (4, 2) or not known.is_list(key):
        return value
    assert known.same(key, value, ",".join(reversed(split_list(value))))
    return ",".join(dict.fromkeys(split_list(value)))


def accepted_values(known: Catalogue, name: str) -> list[str]:
    """Return the spellings of a config that both sides take, as they are written."""
    return [
        value
        for value in values_for(known.keys[name])
        if isinstance(known.normalise(name, value, None), str)
        and value not in WITH_UNITS
        # The one broker here has no tiered storage: it could not hold such a topic.
        and not (name == "remote.storage.enable" and value.strip().lower() == "true")
    ]


def test_validation_and_broker_agree_on_whole_configs(broker: Broker) -> None:
    """Compare verdicts on generated maps, among them the rules across keys."""
    known = broker.known
    seen: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
    @given(st.lists(whole_configs(known), min_size=MAPS_AN_EXAMPLE, max_size=MAPS_AN_EXAMPLE))
    def agree(configs: list[dict[str, str]]) -> None:
        checked = [check_config(known, config) for config in configs]
        verdicts = broker.judge([(f"m{n}", sent) for n, (sent, _) in enumerate(checked)])
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


RULES_ACROSS = {rule for rule in RULES if rule.startswith("tiered-") or rule == "config-lag-pair"}
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


@cache
def odd_values(key: ConfigKey) -> list[str]:
    """Return all values of a config on which validation and brokers agree."""
    return [value for value in values_for(key) if not any(e.covers(key, value) for e in STRICTER)]


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


NAMES = (
    *("a", "A-1_b.c", ".", "..", "...", "._", "-", "_", "a" * 248, "a" * 249, "a" * 250, "a" * 600),
    *(
        "ö",
        "é" * 125,
        "😀",
        "a b",
        " a",
        "a ",
        "a\n",
        "a\t",
        "a/b",
        "a\\b",
        "a:b",
        "a,b",
        "a*",
        "１",
    ),
    *("a\u200bb", "ſ", "İ", "A" * 249, "0", "%00", "a+b", "a@b", "__", "__a", "_schemas"),
    *(f"{name}{suffix}" for name in INTERNAL for suffix in ("", "_", ".")),
)
LATIN_AND_BEYOND = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
"""What can be sent at all: the client's strings end at a NUL and know no lone surrogates."""

STRICTER_NAMES = tuple(INTERNAL.keys() - {"__cluster_metadata"})
"""Kafka lets anyone create its own topics, all but the controllers' log; a spec must not."""


def test_check_name_and_broker_agree(broker: Broker) -> None:
    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(
        st.lists(
            st.text(LATIN_AND_BEYOND, min_size=1, max_size=12)
            | st.text("abcXYZ019._-", min_size=1, max_size=260),
            unique_by=lambda name: name.replace(".", "_"),
            min_size=1,
            max_size=50,
        )
    )
    def agree(names: list[str]) -> None:
        for name, why in zip(names, judge_names(broker, names), strict=True):
            assert bool(check_name(name, None)) == bool(why), (name, why)

    agree()
    for name in dict.fromkeys(NAMES):
        (why,) = judge_names(broker, [name])
        assert bool(check_name(name, None)) == (bool(why) or name in STRICTER_NAMES), (name, why)


def judge_names(broker: Broker, names: Sequence[str]) -> list[str]:
    """Return for each name why the broker refuses it."""
    return broker.judge([(name, {}) for name in names])


def test_the_empty_name_does_not_even_leave_the_client(broker: Broker) -> None:
    assert judge_names(broker, [""]) != [""]
    assert check_name("", None)


def test_names_collide_as_find_collisions_says(broker: Broker) -> None:
    broker.create({"collide.with_me": {}})
    (why,) = judge_names(broker, ["collide_with.me"])
    assert "collides with existing topic" in why
    assert find_collisions(["collide_with.me", "collide.with_me"])


def test_the_catalogue_is_what_the_broker_says(broker: Broker) -> None:
    defined, reported = define_configs(broker.release), report_configs(broker.servers)
    written = (CATALOGUES / f"{broker.known.version}.json").read_text("utf-8")
    assert render_catalogue(build_catalogue(broker.release, defined, reported)) == written
