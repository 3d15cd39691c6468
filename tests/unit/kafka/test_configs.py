"""Folding the configs of many topics, and cutting them into batches."""

from __future__ import annotations

from confluent_kafka.admin import ConfigEntry, ConfigSource

from reconciler.kafka.configs import BATCH, TopicConfigs, _cut_batches

OVERRIDE, DEFAULT = ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DEFAULT_CONFIG


def entry(
    value: str | None, source: ConfigSource = DEFAULT, *, sensitive: bool = False
) -> ConfigEntry:
    return ConfigEntry("k", value, source=source, is_sensitive=sensitive)


class TestFolding:
    def test_an_override_is_no_default(self) -> None:
        found = TopicConfigs()
        found.take("a", 1, {"x": entry("1", OVERRIDE), "y": entry("2")})
        assert found.overrides == {"a": {"x": "1"}}
        assert found.defaults == {"y": "2"}

    def test_an_override_under_an_unknown_key_has_no_value(self) -> None:
        found = TopicConfigs()
        found.take("a", 1, {"x": entry(None, OVERRIDE, sensitive=True)})
        assert found.overrides == {"a": {"x": None}}

    def test_answers_that_differ_are_no_default(self) -> None:
        found = TopicConfigs()
        found.take("a", 1, {"x": entry("1"), "y": entry("2")})
        found.take("b", 2, {"x": entry("9"), "y": entry("2")})
        found.take("c", 1, {"x": entry("1"), "y": entry("2")})
        assert found.defaults == {"y": "2"}

    def test_the_brokers_answer_has_the_number_of_the_source(self) -> None:
        found = TopicConfigs()
        told = entry("1", OVERRIDE)
        told.source = OVERRIDE.value  # what the client makes of an answer
        found.take("a", 1, {"x": told})
        assert found.overrides == {"a": {"x": "1"}}


class TestBatches:
    def test_brokers_take_turns(self) -> None:
        targets = {f"t{n:04}": 1 + n // BATCH % 3 for n in range(4 * BATCH + 1)}
        batches = list(_cut_batches(targets))
        assert [broker for broker, _ in batches] == [1, 2, 3, 1, 2]
        assert sorted(topic for _, batch in batches for topic in batch) == sorted(targets)
        assert max(len(batch) for _, batch in batches) == BATCH

    def test_nothing_is_no_batch(self) -> None:
        assert list(_cut_batches({})) == []
