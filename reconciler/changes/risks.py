"""The risks of a change, as text, and the risks that a spec must accept by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.changes.topics import TopicDiff
from reconciler.diff.fields import managed_overrides
from reconciler.errors import Finding, Severity
from reconciler.model.cluster import Risk
from reconciler.model.plan import RiskNote
from reconciler.units import describe_value

_RETENTION = ("retention.ms", "retention.bytes")


def assess_risks(
    diff: TopicDiff, overrides: Mapping[str, str], defaults: Mapping[str, str]
) -> tuple[RiskNote, ...]:
    """Name the risks of a change. In: the live managed overrides, the defaults of the brokers."""
    if diff.state is None:
        return ()
    if diff.deletion is not None:
        number = len(diff.state.assignment)
        held = "its partition and every record in it"
        if number != 1:
            held = f"its {number:,} partitions and every record in them"
        what = f"the topic is deleted permanently, with {held}"
        # `state: absent` asks for exactly this loss, so it acknowledges it: people would copy a
        # second word along with the first. The budget of deletions in clusters.yaml is the second
        # check. The number of records is shown elsewhere: it falls as they expire.
        return (RiskNote(Risk.DATA_LOSS, what, acknowledged=True),)
    if not diff.changes:
        return ()
    before, after = {**defaults, **overrides}, {**defaults, **diff.config}
    notes = [*_lost_records(before, after)]
    if diff.new_partitions:
        left = ", and their old values stay behind" if _is_compacted(diff, defaults) else ""
        what = f"keys move to other partitions{left}"
        notes.append(RiskNote(Risk.ORDERING, what, field="partitions"))
    notes += _failing_writes(before, after, diff.replication_factor)
    return tuple(note.with_consent(diff.spec, *_find_values(diff, note)) for note in notes)


def _find_values(diff: TopicDiff, note: RiskNote) -> tuple[object, object]:
    """Return both values of the field whose change has a risk, as the plan shows them."""
    changed = (change for change in diff.changes if change.path == note.field)
    return next(((change.found, change.desired) for change in changed), (None, None))


def refuse_unaccepted(
    diff: TopicDiff, risks: Sequence[RiskNote], defaults: Mapping[str, str]
) -> Iterator[Finding]:
    """Refuse data loss, and reordering of a compacted topic, unless the spec acknowledges it.

    The way out is one list of all risks of the topic, also the acknowledged ones, to copy.
    """
    missing = [
        note
        for note in risks
        if not note.acknowledged and _needs_acknowledging(diff, note.risk, defaults)
    ]
    if not missing:
        return
    listed = ", ".join(_list_entries(diff, risks, missing))
    for note in missing:
        what, where = f"{note.consequence} ({note.risk})", diff.spec.location
        stated = [change for change in diff.spec.accepts if change.risk == note.risk]
        if stated:
            other = next((c for c in stated if c.field == note.field), stated[0])
            where = other.where
            what += (
                f", and {where.file}:{where.line} acknowledges "
                f"{_spell_change(note.risk, *other[1:4])}, not {_spell_planned(diff, note)}"
            )
        way_out = f"write acknowledge: [{listed}] in the spec if this is intended"
        yield Finding("risk-not-acknowledged", what, way_out, where)


def _list_entries(
    diff: TopicDiff, risks: Sequence[RiskNote], missing: Sequence[RiskNote]
) -> list[str]:
    """List the entries that accept every risk of a topic, and those that accept any change.

    If the spec accepts single changes of a risk, the entry for it also names the change.
    """
    single = {change.risk for change in diff.spec.accepts}
    entries = set(diff.spec.acknowledge)
    for note in risks:
        if str(note.risk) in single:
            if note.acknowledged or note in missing:
                entries.add(_spell_entry(note.risk, _spell_planned(diff, note)))
        elif note in missing:
            entries.add(str(note.risk))
    return sorted(entries)


def _spell_planned(diff: TopicDiff, note: RiskNote) -> str:
    return _spell_change(note.risk, note.field, *_find_values(diff, note))


def _spell_change(risk: str, field: str, before: object, after: object) -> str:
    """Spell a change as a spec states it: retention.ms 7d → 1h."""
    key = field.removeprefix("config.")
    old, new = _spell_value(key, before, "not set"), _spell_value(key, after, "unset")
    return f"{old} → {new}" if risk == Risk.ORDERING else f"{key} {old} → {new}"


def _spell_value(key: str, value: object, nothing: str) -> str:
    text = nothing if value is None else str(value)
    return describe_value(key, text).removesuffix(f" ({text})")


def _spell_entry(risk: str, change: str) -> str:
    """Spell an entry of acknowledge; a list needs quotes, since a comma ends the entry."""
    return f'{risk}: "{change}"' if "," in change else f"{risk}: {change}"


def note_unused(
    diff: TopicDiff, risks: Sequence[RiskNote], excluded: Collection[int]
) -> Iterator[Finding]:
    """Note each acknowledgement that no change of a topic needs: it would accept a later one.

    Nothing is noted while the topic waits for something else: it is new, deleted, refused, or has
    moves to make. Replicas on `excluded` brokers may be drained, which copies them.
    """
    if diff.state is None or diff.spec.absent or diff.refusals or diff.pending:
        return
    needed = {str(note.risk) for note in risks}
    if any(not row.isdisjoint(excluded) for row in map(frozenset, diff.state.assignment)):
        needed.add(str(Risk.TRAFFIC))
    unused = [
        (risk, diff.spec.where(f"acknowledge.{risk}"))
        for risk in sorted(diff.spec.acknowledge - needed)
    ]
    for change in diff.spec.accepts:
        noted = (note for note in risks if (note.risk, note.field) == change[:2])
        if not any(change.covers(*_find_values(diff, note)) for note in noted):
            spelled = _spell_change(change.risk, *change[1:4])
            unused.append((_spell_entry(change.risk, spelled), change.where))
    for entry, where in unused:
        what = f"no change needs acknowledge: [{entry}] at {where.file}:{where.line}"
        way_out = "remove it once no cluster needs it"
        yield Finding("acknowledge-unused", what, way_out, where, Severity.NOTE)


def _needs_acknowledging(diff: TopicDiff, risk: Risk, defaults: Mapping[str, str]) -> bool:
    # A compacted topic keeps the last value of each key per partition. If keys move, the old
    # partition keeps a value that nothing replaces any more.
    if risk is Risk.ORDERING:
        return _is_compacted(diff, defaults)
    return risk is Risk.DATA_LOSS


def _is_compacted(diff: TopicDiff, defaults: Mapping[str, str]) -> bool:
    """Return whether the last value of every key is kept, before or after the change."""
    live = managed_overrides(diff.state) if diff.state else {}
    return any("compact" in _policies({**defaults, **config}) for config in (live, diff.config))


def _lost_records(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[RiskNote]:
    deleting = "cleanup.policy" not in after or "delete" in _policies(after)
    for key in _RETENTION if deleting else ():  # retention has no effect on compaction alone
        yield from _lowered(key, before.get(key), after.get(key))
    # An unknown policy can already include the new one, so nothing is known to be lost by it.
    for policy in (
        sorted(_policies(after) - _policies(before)) if "cleanup.policy" in before else ()
    ):
        what = _POLICY_CONSEQUENCE[policy]
        yield RiskNote(Risk.DATA_LOSS, what, field="config.cleanup.policy")
    for key, consequence in _SWITCHES.items():
        if before.get(key) not in (None, after.get(key)) and after.get(key) == consequence[0]:
            yield RiskNote(Risk.DATA_LOSS, consequence[1], field=f"config.{key}")


def _lowered(key: str, before: str | None, after: str | None) -> Iterator[RiskNote]:
    """Name what a lower limit deletes; an unknown limit may be higher or lower."""
    beyond = "older than" if key.endswith(".ms") else "beyond"
    if after is None and before is not None:
        what = f"records {beyond} the brokers' own {key}, not known here, are deleted"
        yield RiskNote(Risk.DATA_LOSS, what, field=f"config.{key}")
    elif after is not None and (before is None or _limit(after) < _limit(before)):
        kept = describe_value(key, after)
        what = f"records {beyond} {kept} are deleted"
        yield RiskNote(Risk.DATA_LOSS, what, field=f"config.{key}")


def _failing_writes(
    before: Mapping[str, str], after: Mapping[str, str], replication: int
) -> Iterator[RiskNote]:
    """Name the consequences for producers. Units: replicas, bytes."""
    key = "min.insync.replicas"
    least, was = (int(config[key]) if key in config else None for config in (after, before))
    if least is not None and was is not None and least < was:
        held = "1 replica has" if least == 1 else f"{least} replicas have"
        what = f"a write counts as safe once {held} it, where it took {was}"
        yield RiskNote(Risk.DURABILITY, what, field=f"config.{key}")
    if least is not None and was is not None and was < least == replication:
        # Kafka requires at most all replicas (KAFKA-21110), so only equality is at risk here; more
        # replicas than there are is refused.
        what = "writes with acks=all fail while one broker is down"
        yield RiskNote(Risk.TRAFFIC, what, field=f"config.{key}")
    key = "max.message.bytes"
    if key in before and key in after and int(after[key]) < int(before[key]):
        limit = describe_value(key, after[key])
        what = f"producers of larger batches than {limit} fail from now on"
        yield RiskNote(Risk.TRAFFIC, what, field=f"config.{key}")


_POLICY_CONSEQUENCE = {
    "delete": "records past the retention are deleted from now on",
    "compact": "only the last record of every key is kept from now on",
}

_SWITCHES = {
    "unclean.leader.election.enable": (
        "true",
        "a replica that lags may become leader, and what it lacks is lost",
    ),
    "remote.storage.enable": ("false", "records in remote storage may be deleted"),
}


def _policies(config: Mapping[str, str]) -> set[str]:
    return {policy for policy in config.get("cleanup.policy", "").split(",") if policy}


def _limit(value: str) -> float:
    """Return a retention as a number: any negative value means no limit."""
    number = int(value)
    return float("inf") if number < 0 else number
