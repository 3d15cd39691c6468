"""What governs the topics of one cluster: its policy, and the configs that its service knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import Finding, Severity
from reconciler.policy import Cluster, Judge, check_limits
from reconciler.spec.names import check_name
from reconciler.spec.rules import check_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.model import TopicSpec
    from reconciler.spec.clusters import ClusterEntry
    from reconciler.spec.configs import Catalogue


class Governor:
    """Holds the specs of a cluster against what is allowed there. `judge` asks the team's rules."""

    def __init__(self, entry: ClusterEntry, catalogue: Catalogue) -> None:
        self._entry = entry
        self._catalogue = catalogue
        rules = [rule for _, rule in sorted(entry.policy.rules.items())]
        cluster = Cluster(entry.name, entry.kafka_version)
        self.judge = Judge(rules, cluster, catalogue.interpret)
        self.findings = tuple(self.judge.findings)

    def check(self, spec: TopicSpec) -> Iterator[Finding]:
        """Say everything that a resolved spec may not be."""
        yield from check_limits(spec, self._entry.policy, self._entry.name)
        yield from self.judge.judge_spec(spec)
        yield from self._check_offered(spec)

    def allows(self, spec: TopicSpec) -> bool:
        """Tell whether validation accepts a spec, such as one that a way out would lead to."""
        findings = [
            *check_name(spec.name, None),
            *check_spec(spec, self._entry.name),
            *self._catalogue.check_together(spec.config, spec.where),
            *self.check(spec),
        ]
        errors = any(finding.severity is Severity.ERROR for finding in findings)
        return self._entry.minds(spec.name) and not errors

    def _check_offered(self, spec: TopicSpec) -> Iterator[Finding]:
        offered = self._entry.known_configs
        if offered is None or spec.absent:
            return
        for key in sorted(spec.config.keys() - offered):
            name, where = self._entry.name, spec.where(f"config.{key}")
            what = f"{key} is none of the known_configs of {name}, whose service refuses others"
            away = f"{{config: {{{key}: null}}}}"
            if where.file == spec.location.file:
                below = f"overrides: {{{name}: {away}}}"
            else:
                below = f"clusters: {{{name}: {{defaults: {away}}}}}"
            yield Finding("config-not-offered", what, f"take it out, or write {below}", where)
