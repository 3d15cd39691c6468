"""The page of JSON: what commands print or write for programs, by the schema of each format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from markdown import escape, link, spell_anchor

from reconciler.cli.schema import SCHEMAS

Schema = Mapping[str, Any]

SPECS = ("topic", "clusters", "baseline")
"""The formats that people write: keys.md has them."""

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "plan": ("plan", "show", "elect", "rebalance", "moves import"),
    "compare": ("rebalance --compare",),
    "snapshot": ("snapshot",),
    "moves": ("moves status",),
    "health": ("health",),
    "validation": ("validate",),
    "get": ("get topics", "get brokers", "get partitions", "get groups", "get configs"),
    "describe": ("describe topic", "describe broker"),
    "history": ("history",),
    "grants": ("grants",),
    "doctor": ("doctor",),
    "owners": ("owners",),
    "simulate": ("simulate",),
    "rehearse": ("rehearse",),
    "sandbox": ("sandbox status",),
    "fleet-plan": ("fleet plan",),
    "fleet-audit": ("fleet audit",),
    "fleet-history": ("fleet history",),
    "fleet-lake": ("fleet lake list",),
}
"""The commands that print each format, in the order of the page."""

MEANINGS: Mapping[str, str] = {
    "format_version": "Version of the format, MAJOR.MINOR.",
    "cluster": "Name of the cluster in clusters.yaml, or its address.",
    "cluster_id": "Id that the cluster has for itself.",
    "kafka_version": "Kafka release.",
    "notes": "What could not be read, and other remarks.",
    "plan.fingerprint": "Hash of the effects of the plan and of its inputs. An approval names it.",
    "plan.seal": "Hash of the document, which `apply` and `show` check.",
    "plan.cluster": "The cluster that the plan is for, and its balance over the eligible brokers.",
    "plan.agreed": "With `--changed-since`: topics that are as specified.",
    "plan.stages": "Clusters of each stage, in the order in which a merge reaches them.",
    "plan.unmanaged": "Live topics that no spec names.",
    "plan.notes": "Remarks on topics, which refuse nothing.",
    "plan.refusals": "Why the entire plan is refused.",
    "plan.alerts": "Guards that a request loosens, and a changed client.",
    "snapshot.$schema": "Address of the schema, for editors.",
    "snapshot.format_version": "Version of the format, MAJOR.MINOR.",
    "snapshot.cluster_id": "Id that the cluster has for itself.",
    "snapshot.read_at": "When sizes were read, by the clock of the reader.",
    "snapshot.measured_s": "Time over which rates were measured, in seconds.",
    "snapshot.config_defaults": "Effective values of topic configs, without overrides.",
    "snapshot.broker_settings": "Flags of the brokers that limit topics.",
    "snapshot.can_cordon": "Whether brokers know `cordoned.log.dirs`, of Kafka 4.3.",
    "snapshot.committed_offsets": "By group and topic, one offset for each partition.",
    "moves.seen_at": "When the cluster was read.",
    "health.at_risk": "Whether data or availability is at risk. Then the command exits 2.",
    "health.partial": "Whether something that could be at risk was not read.",
    "health.dead": "Brokers that are not alive.",
    "health.fenced": "Brokers that are registered, not alive, and hold no replica.",
    "health.cordoned": "Ids of brokers that take no new replicas.",
    "validation.valid": "Whether there is no error.",
    "validation.topics": "Number of topics. null if there is an error.",
    "validation.files": "Number of files. null if there is an error.",
    "validation.clusters": "Names of clusters. null if there is an error.",
    "describe.name": "Name of the topic.",
    "history.source": "The audit topic or the journal.",
    "history.total": "Number of runs that were asked for.",
    "history.unread": "Number of records that are not of reconciler, or of a later version.",
    "simulate.topic": "Name of the topic.",
    "simulate.strategy": "Strategy of placement.",
    "compare.wanted": "Options that the run would use without `--compare`.",
    "compare.within_percent": "How far from its share a broker may be.",
    "compare.farthest": "Today's largest distance from a share, by load, in parts of the share.",
    "rehearse.succeeded": "Whether everything went as planned.",
    "rehearse.differences": "What differs from the plan, by topic.",
    "rehearse.pending": "Topics that a second plan would change.",
    "rehearse.balance_before": "Balance of the throwaway cluster before the plan.",
    "rehearse.balance_after": "Balance of the throwaway cluster after the plan.",
    "rehearse.seconds": "Duration of each part, in seconds.",
    "sandbox.engine": "`embedded` or `container`.",
    "sandbox.bootstrap_servers": "Address for clients.",
    "sandbox.directory": "Where the brokers keep their data and logs.",
    "fleet-plan.plans": "Plans of changes, by cluster.",
    "fleet-plan.move_plans": "Plans of moves, by cluster.",
    "fleet-audit.collection": "Name of the collection.",
    "fleet-audit.counts": "Number of findings, by severity.",
    "fleet-audit.findings": "Every finding, in the order in which to look at them.",
    "fleet-history.events": "What is new, removed, larger or moved.",
    "fleet-history.drift": "Differences from specs that lasted.",
    "fleet-history.growth": "Growth of topics.",
    "fleet-lake.collection": "Name of the collection.",
    "fleet-lake.commit": "Commit of the specs.",
    "fleet-lake.clusters_read": "Number of clusters that were read.",
    "fleet-lake.clusters_unread": "Number of clusters that could not be read.",
    "fleet-lake.attempts": "Number of attempts, by kind.",
}
"""What fields mean that their schema does not describe: by format and field, or by field."""

HEAD = """\
# JSON

Generated from the code: what commands print with `--format json`, and the files that they write.
The JSON is on stdout, and nothing else is. A major version of `format_version` changes when a field
changes its meaning or is removed. A minor version adds fields, which a reader must skip. The keys
of specs are in {keys}.

| command | format |
|---|---|
"""

OTHERS = """
## Formats without a schema

- `--journal FILE` writes JSON lines: {journal}.
- `validate --format sarif` prints SARIF 2.1.0, and `--format junit` the XML of JUnit.
- `report notify --format json` sends {notified}.
- Files of `report approved`, `report accepted` and `report uneven` are for the commands that their
  options name. Their form may change with each release."""


def render_json() -> str:
    """Return the page: an index by command, then a section for each format."""
    if set(COMMANDS) != set(SCHEMAS) - set(SPECS):
        raise LookupError("COMMANDS must name every format of an answer once")
    lines = HEAD.format(keys=link("reference/keys.md", "Keys")).splitlines()
    for name, commands in COMMANDS.items():
        lines += [f"| `{command}` | [{name}](#{spell_anchor(name)}) |" for command in commands]
    for name in COMMANDS:
        lines += _render_format(name, SCHEMAS[name]())
    journal = link("reference/apply.md", "the journal", "journal")
    notified = link("how-to/send-notifications.md", "one document")
    lines += OTHERS.format(journal=journal, notified=notified).splitlines()
    return "\n".join(lines) + "\n"


def _render_format(name: str, schema: Schema) -> list[str]:
    file = f"`schemas/{name}.schema.json`"
    documents = list(_list_documents(schema))
    says = documents[0].get("description") if len(documents) == 1 else None
    lines = ["", f"## {name}", "", escape(says or f"{schema['title']}."), ""]
    printed = ", ".join(
        f"[`{command}`](commands.md#reconciler-{spell_anchor(command.partition(' --')[0])})"
        for command in COMMANDS[name]
    )
    lines.append(f"Printed by {printed}. Schema: {file}, or `reconciler schema {name}`.")
    for each in documents:
        if len(documents) > 1:
            lines += ["", f"### {name}: {_name_document(each)}", "", escape(each["description"])]
        lines += ["", "| field | type | meaning |", "|---|---|---|"]
        for field, held in each["properties"].items():
            shown = _spell_type(held, schema["$defs"])
            meaning = _explain(name, field, held, schema["$defs"])
            optional = "" if field in each.get("required", ()) else "; may be left out"
            lines.append(f"| `{field}` | {shown}{optional} | {meaning} |")
    return lines


def _list_documents(schema: Schema) -> Iterator[Schema]:
    """Yield the documents of a format: itself, each of several, or an item of a list."""
    if "properties" in schema:
        yield schema
    for each in schema.get("anyOf", [schema["items"]] if "items" in schema else []):
        yield schema["$defs"][_name_reference(each)]


def _name_document(document: Schema) -> str:
    """Name one of several documents by what it holds: TopicRows is topic rows."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", document["title"]).lower()
    return words.removesuffix(" document").removesuffix(" answer")


def _name_reference(held: Schema) -> str:
    return str(held["$ref"]).rpartition("/")[2]


def _spell_type(held: Schema, definitions: Mapping[str, Schema]) -> str:
    """Spell a type in words; of a map with declared keys, list them."""
    if "$ref" in held:
        return _spell_type(definitions[_name_reference(held)], definitions)
    if "anyOf" in held:
        return " or ".join(dict.fromkeys(_spell_type(each, definitions) for each in held["anyOf"]))
    if "enum" in held:
        return ", ".join(f"`{each}`" for each in held["enum"])
    return _spell_plain(held, definitions)


def _spell_plain(held: Schema, definitions: Mapping[str, Schema]) -> str:
    match held.get("type"):
        case "array":
            item = _spell_type(held["items"], definitions)
            if item.startswith("map"):
                return f"list of maps{item.removeprefix('map')}"
            return f"list of ({item})" if " or " in item else f"list of {item}"
        case "object" if "properties" in held:
            return f"map ({', '.join(f'`{key}`' for key in held['properties'])})"
        case "object":
            values = held.get("additionalProperties")
            of = f" to {_spell_type(values, definitions)}" if isinstance(values, dict) else ""
            return f"map of names{of}"
        case "string":
            return {"date-time": "time"}.get(str(held.get("format")), "text")
        case None:
            return "list of text"  # of a tuple of names
        case other:
            return {"integer": "number"}.get(other, str(other))


def _explain(name: str, field: str, held: Schema, definitions: Mapping[str, Schema]) -> str:
    """Say what a field means. Errors: LookupError if neither the schema nor `MEANINGS` does."""
    own = held.get("description") or MEANINGS.get(f"{name}.{field}")
    if own is None and not (found := list(_list_references(held))):
        own = MEANINGS.get(field)
    elif own is None:
        own = MEANINGS.get(field) or definitions[found[0]].get("description")
    if own is None:
        raise LookupError(f"MEANINGS lacks {name}.{field}")
    return escape(re.sub(r"\s+", " ", own.partition("\n\n")[0]))


def _list_references(held: Any) -> Iterator[str]:
    if isinstance(held, list):
        for each in held:
            yield from _list_references(each)
    if isinstance(held, dict):
        if "$ref" in held:
            yield _name_reference(held)
        for each in held.values():
            yield from _list_references(each)
