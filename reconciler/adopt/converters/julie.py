"""Julie, formerly kafka-topology-builder: topologies whose levels make up the topics' names."""

from __future__ import annotations

from reconciler.adopt.converters.source import ForeignTopic, Source
from reconciler.spec.values import YamlMap, YamlText

_TOPIC = {"name", "dataType", "config", "plan", "description"}
_AFTER = {"projects", "special_topics", "platform", "plans"}
_COUNTS = ("num.partitions", "replication.factor")


def read_topologies(source: Source) -> None:
    """Read topologies. The plan of a topic can be in any document of plans."""
    plans: dict[str, YamlMap] = {}
    for document in source.documents:
        written = source.get_table(document, "plans")
        plans |= {str(name): source.get_table(written, name) for name in written}
    for document in source.documents:
        if "context" in document:
            _read_topology(document, plans, source)
        elif "plans" not in document:
            source.note("a document without context is not a topology", document.where)


def _read_topology(document: YamlMap, plans: dict[str, YamlMap], source: Source) -> None:
    """Read the topics of a topology. Their prefix is the levels from `context` to `projects`.

    Julie joins these levels by dots, in the order of the file.
    """
    levels = [value for key, value in document.entries() if key not in _AFTER]
    prefix = [str(value) for value in levels if isinstance(value, YamlText)]
    source.note_rest(
        document,
        {key for key, value in document.entries() if isinstance(value, YamlText)}
        | _AFTER - {"platform"},
        "topology",
    )
    for project in source.list_tables(document, "projects"):
        name = str(project.get("name"))
        source.note_rest(project, {"name", "topics"}, f"project {name}")
        for topic in source.list_tables(project, "topics"):
            _read_topic(topic, [*prefix, name], plans, source)
    for topic in source.list_tables(document, "special_topics"):
        _read_topic(topic, [], plans, source)


def _read_topic(
    topic: YamlMap, above: list[str], plans: dict[str, YamlMap], source: Source
) -> None:
    own = topic.get("name")
    if not isinstance(own, YamlText):
        source.note("a topic has no name", topic.where, "write one")
        return
    kind = source.read_text(topic, "dataType") if above else None
    name = ".".join([*above, str(own), *([kind] if kind else [])])
    source.note_rest(topic, _TOPIC, name)
    config = _read_plan(topic, name, plans, source)
    config |= source.read_config(topic.get("config"), name)
    counts: dict[str, int] = {}
    for key in _COUNTS:
        text = config.pop(key, None)
        if text is None:
            continue
        if isinstance(text, str) and text.isascii() and text.isdigit() and int(text) > 0:
            counts[key] = int(text)
        else:
            source.note(f"{name}: {key} {text} is not a count, and is left open", own.where)
    source.topics.append(
        ForeignTopic(
            name,
            own.where,
            partitions=counts.get("num.partitions"),
            replication_factor=counts.get("replication.factor"),
            config=config,
            description=source.read_text(topic, "description"),
        )
    )


def _read_plan(
    topic: YamlMap, name: str, plans: dict[str, YamlMap], source: Source
) -> dict[str, str | tuple[str, ...]]:
    plan = source.read_text(topic, "plan")
    if plan is None:
        return {}
    if plan not in plans:
        where = topic.key("plan").where
        way_out = "also pass the file of plans, or write its values"
        source.note(f"{name}: there is no plan {plan}", where, way_out)
        return {}
    return source.read_config(plans[plan].get("config"), f"plan {plan}")
