"""policy-baseline.yaml: who broke which limit before it was introduced, and why that may stay.

Each entry is a document. An entry that nothing needs any more is reported, and so is what it
exempts: the file can shrink, but it cannot grow unnoticed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.errors import Finding, Location, Severity
from reconciler.policy.baseline import is_worse
from reconciler.policy.breaches import Breach
from reconciler.policy.limits import read_limit
from reconciler.policy.loosening import name_some
from reconciler.policy.policy import BrokenLimit
from reconciler.spec.catalogue import every_key, lines_that_know, spell_line
from reconciler.spec.configs import choose_catalogue
from reconciler.spec.declarations import check_form
from reconciler.spec.forms import ExemptionForm
from reconciler.spec.policy_keys import PARTED, QUOTAS
from reconciler.spec.syntax import load_text
from reconciler.spec.values import YamlMap, YamlText, describe_yaml
from reconciler.units import count

BASELINE_FILE = "policy-baseline.yaml"
"""Its name: next to clusters.yaml, at the top of an estate."""

_QUOTA, _CEL = "quota-per-owner", "policy-rule"
_COUNTED = ("policy-partitions", "policy-replication", _QUOTA)
_VALUED = (*_COUNTED, "policy-config", "policy-config-value")
_WRITE = "reconciler validate --write-baseline"


@dataclass(frozen=True, slots=True)
class WrittenExemption:
    """An entry: what it exempts, at which value, on which clusters (None: on all), and why."""

    broken: BrokenLimit
    value: str
    where: Location
    clusters: tuple[YamlText, ...] | None = None
    reason: str = ""

    def applies(self, cluster: str) -> bool:
        """Return whether it exempts its topic on a cluster."""
        return self.clusters is None or cluster in self.clusters


def read_baseline(content: bytes, file: str) -> tuple[tuple[WrittenExemption, ...], list[Finding]]:
    """Read a baseline: its entries, and every error in their form."""
    loaded = load_text(content, file)
    findings, read = list(loaded.findings), list[WrittenExemption]()
    for document in loaded.documents:
        if not isinstance(document, YamlMap):
            what = f"the document is {describe_yaml(document)}, not a map"
            way_out = f"write entries with '---' between them; or remove the file, and run {_WRITE}"
            findings.append(Finding("document-form", what, way_out, document.where))
            continue
        entry, found = check_form(ExemptionForm, document)
        findings += found
        if entry is None or found:
            continue
        exemption = _make_exemption(entry, document.where)
        if isinstance(exemption, Finding):
            findings.append(exemption)
        else:
            read.append(exemption)
    return tuple(read), [*findings, *_list_repeated(read)]


def _make_exemption(entry: ExemptionForm, where: Location) -> WrittenExemption | Finding:
    """Check the keys of an entry against each other. Returns the finding if they do not fit."""
    rule, limit, value = entry.rule, str(entry.limit or ""), str(entry.value or "")
    needs = []
    if (rule == _QUOTA) == (entry.topic is not None):
        needs.append("owner: NAME and no topic" if rule == _QUOTA else "topic: NAME")
    if rule != _QUOTA and entry.owner is not None:
        needs.append("no owner")
    if (limit != "") != (rule in PARTED or rule == _CEL) or (
        rule == _QUOTA and limit not in QUOTAS
    ):
        some = f"limit: {' or '.join(QUOTAS)}" if rule == _QUOTA else "limit: the config"
        some = "limit: the name of the rule" if rule == _CEL else some
        needs.append(some if rule in PARTED or rule == _CEL else "no limit")
    if rule in _VALUED and not value:
        needs.append("value: what the topic had")
    if rule in _COUNTED and value and read_limit("", value) is None:
        needs.append("a number as value")
    if needs:
        what = f"an entry for {rule} does not say what it exempts"
        way_out = f"write {', '.join(needs)}; or remove the entry, and run {_WRITE}"
        return Finding("policy-baseline-form", what, way_out, where)
    if entry.value is not None and limit in every_key():
        release = choose_catalogue(spell_line(lines_that_know(limit)[-1]))
        normal = release.normalise(limit, value, entry.value.where)
        if not isinstance(normal, str):
            return normal[0]
        value = normal
    who = entry.owner if rule == _QUOTA else entry.topic
    broken = BrokenLimit(rule, None if who is None else str(who), limit)
    return WrittenExemption(broken, value, where, entry.clusters, str(entry.reason or ""))


def _list_repeated(read: Sequence[WrittenExemption]) -> Iterator[Finding]:
    """Yield a finding for each entry that exempts what an earlier one does, at any value."""
    first: dict[BrokenLimit, list[WrittenExemption]] = defaultdict(list)
    for entry in read:
        for other in first[entry.broken]:
            if entry.clusters is None or any(map(other.applies, entry.clusters)):
                what = f"the entry at line {other.where.line} exempts {_name(entry.broken)} already"
                way_out = "keep one of them"
                yield Finding("policy-baseline-form", what, way_out, entry.where)
                break
        first[entry.broken].append(entry)


def check_baseline(
    exemptions: Sequence[WrittenExemption],
    exempt: Mapping[str, Collection[Breach]],
    held: Mapping[str, Mapping[BrokenLimit, str]],
) -> Iterator[Finding]:
    """Report what a baseline exempts, and its entries that are out of date or give no reason.

    In: by cluster, the breaches that are exempt, and the values of the entries that hold.
    """
    found = {name: {b.broken: b for b in breaches} for name, breaches in exempt.items()}
    used, stale, better = defaultdict(list), defaultdict(list), defaultdict(list)
    for entry in exemptions:
        on = [name for name in exempt if entry.applies(name)]
        on = [name for name in on if held[name].get(entry.broken) == entry.value]
        breaches = [found[name][entry.broken] for name in on if entry.broken in found[name]]
        # An entry without clusters is for every one that the topic is on.
        gone = len(breaches) < len(on) if entry.clusters is not None else not breaches
        if breaches:
            used[_name_rule(entry.broken)].append(entry)
        if on and gone:
            stale[_name_rule(entry.broken)].append(entry)
        elif breaches and all(_is_better(breach, entry.value) for breach in breaches):
            better[_name_rule(entry.broken)].append(entry)
    for rule, entries in used.items():
        every = {entry.broken.who for entry in entries}
        noun = "owner" if entries[0].broken.rule == _QUOTA else "topic"
        are = "is" if len(every) == 1 else "are"
        what = f"{count(len(every), noun)} {are} exempt from {rule}: {_name_all(entries)}"
        yield Finding("policy-baseline", what, "", entries[0].where, Severity.NOTE)
    for rule, entries in stale.items():
        what = f"entries for {rule} are no longer needed: {_name_all(entries)}"
        yield _warn("policy-baseline-stale", what, f"run {_WRITE}, which removes them", entries)
    for rule, entries in better.items():
        what = f"entries for {rule} exempt more than the specs ask for now: {_name_all(entries)}"
        yield _warn("policy-baseline-stale", what, f"run {_WRITE}, which corrects them", entries)
    if unexplained := [entry for entry in exemptions if not entry.reason.strip()]:
        named = {_name(entry.broken) for entry in unexplained}
        what = f"{count(len(named), 'exemption')} without a reason: {name_some(named)}"
        way_out = "write under reason why it may stay, and until when"
        yield _warn("policy-baseline-reason", what, way_out, unexplained)


def _warn(rule: str, what: str, way_out: str, entries: Sequence[WrittenExemption]) -> Finding:
    return Finding(rule, what, way_out, entries[0].where, Severity.WARNING)


def _is_better(breach: Breach, known: str) -> bool:
    """Return whether a value is nearer to its limit than it was."""
    limit = breach.broken.limit if breach.broken else ""
    return is_worse(limit, known, breach.value, breach.bounds)


def _name_all(entries: Sequence[WrittenExemption]) -> str:
    return name_some({_name_who(entry.broken) for entry in entries})


def _name_rule(broken: BrokenLimit) -> str:
    return f"the rule {broken.limit}" if broken.rule == _CEL else broken.rule


def _name_who(broken: BrokenLimit) -> str:
    if broken.who is None:
        return "the topics without an owner"
    return f"{broken.who} ({broken.limit})" if broken.rule in PARTED else broken.who


def _name(broken: BrokenLimit) -> str:
    who = broken.who or "the topics without an owner"
    return f"{who} ({' '.join(filter(None, [broken.rule, broken.limit]))})"
