"""Laws of policies: neither the order of files and rules nor hashes change what they find."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import permutations
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from shorthand import CATALOGUE, spec

from reconciler.api.planning import load_estate
from reconciler.errors import Location, SpecError, sort_findings
from reconciler.policy.facts import PolicyCluster
from reconciler.policy.limits import check_limits
from reconciler.policy.policy import Bounds, Limit, Policy, PolicyRule, lay_policy
from reconciler.policy.rules import Judge

HEAD = "version: 1\ndefaults: {partitions: 9}\nclusters: {prod: {}, lab: {}}\npolicy:\n"
LIMITS = "  owner: required\n  partitions: {max: 4}\n  config: {deny: [segment.*, retention.*]}\n"
RULES = (
    "    even: {check: spec.partitions % 2 == 0, message: Even counts.}\n",
    "    mine: {check: spec.owner == 'me', message: Mine alone.}\n",
    "    open: {check: \"spec.config['flush.ms'] > 1\", message: Flush.}\n",
)
TOPICS = {
    "a": "topic: a\n",
    "b": "topic: b\npartitions: 5\nconfig: {segment.ms: 1h, retention.ms: 1h}\n",
    "c": "topic: c\nowner: you\npartitions: 7\n",
}


def find(root: Path, rules: tuple[str, ...]) -> list[str]:
    """Return what is said of the topics, in words that no place is in."""
    (root / "clusters.yaml").write_text(f"{HEAD}{LIMITS}  rules:\n{''.join(rules)}")
    try:
        load_estate(root)
    except SpecError as error:
        return sorted(f"{f.rule} {f.what}" for f in error.findings)
    raise AssertionError("the estate breaks its policy")


def test_order_changes_nothing() -> None:
    found = set()
    for topics, rules in zip(permutations(TOPICS), permutations(RULES), strict=True):
        with tempfile.TemporaryDirectory() as work:
            for number, name in enumerate(topics):
                (Path(work) / f"{number}.yaml").write_text(TOPICS[name])
            found.add(tuple(find(Path(work), rules)))
    (said,) = found
    assert len(said) == 16


def test_hash_seeds_change_nothing() -> None:
    answers = set()
    with tempfile.TemporaryDirectory() as work:
        estate = Path(work) / "topics"
        estate.mkdir()
        (estate / "clusters.yaml").write_text(f"{HEAD}{LIMITS}  rules:\n{''.join(RULES)}")
        (estate / "topics.yaml").write_text("---\n".join(TOPICS.values()))
        program = "from reconciler.cli import main; main()"
        for seed in ("1", "2", "3"):
            command = [sys.executable, "-c", program, "validate"]
            environment = {**os.environ, "PYTHONHASHSEED": seed}
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=work, env=environment, check=False
            )
            assert done.returncode == 1, done.stderr
            answers.add(done.stdout)
    (answer,) = answers
    assert answer.count("[policy-rule]") == 6


limits = st.none() | st.integers(1, 9).map(lambda n: Limit(n, str(n)))
bounds = st.none() | st.builds(Bounds, limits, limits)
policies = st.builds(
    Policy,
    owner=st.none() | st.booleans(),
    partitions=bounds,
    replication_factor=bounds,
    require=st.none() | st.just(("retention.ms",)),
)


@given(policies, policies, policies)
def test_laying_is_associative_and_nothing_lies_over_nothing(
    low: Policy, middle: Policy, high: Policy
) -> None:
    assert lay_policy(lay_policy(low, middle), high) == lay_policy(low, lay_policy(middle, high))
    assert lay_policy(low, low) == low
    assert lay_policy(Policy(), low) == lay_policy(low, Policy()) == low


@given(policies, st.integers(1, 9), st.integers(1, 9))
def test_a_limit_in_cel_says_what_the_limit_itself_says(
    policy: Policy, partitions: int, replicas: int
) -> None:
    wished = spec(partitions=partitions, replication_factor=replicas)
    checks = []
    for key in ("partitions", "replication_factor"):
        limit = getattr(policy, key) or Bounds()
        checks += [f"spec.{key} >= {limit.least.shown}"] if limit.least else []
        checks += [f"spec.{key} <= {limit.most.shown}"] if limit.most else []
    rules = [PolicyRule(f"r{n}", check, "x", Location("f", 1)) for n, check in enumerate(checks)]
    judged = Judge(rules, PolicyCluster("prod"), CATALOGUE.interpret).judge_spec(wished)
    counts = ("policy-partitions", "policy-replication")
    limited = [b for b in check_limits(wished, policy, "prod") if b.finding.rule in counts]
    assert len(sort_findings(breach.finding for breach in judged)) == len(limited)
