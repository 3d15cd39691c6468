"""One issue for each owner of topics that are due, on both hosts."""

from __future__ import annotations

from dataclasses import replace

from code_host import CodeHost
from shorthand import HERE, cluster, spec, topic

from reconciler.changes.plan import plan_cluster
from reconciler.codehost.due import report_due
from reconciler.codehost.host import Run
from reconciler.model.plan import Plan, Scope
from reconciler.spec.entry import ClusterEntry

OWNERS = {"a": "shop", "b": "shop", "c": "@acme/pay", "d": None}


def make(*due: str) -> Plan:
    """Return the plan of a cluster on which these topics have expired."""
    state = replace(cluster(*(topic(name=name) for name in OWNERS)), read_on="2027-01-15")
    specs = [
        spec(name, owner=owner, expires="2027-01-01" if name in due else None)
        for name, owner in OWNERS.items()
    ]
    return plan_cluster(ClusterEntry("prod", HERE), specs, state)


def test_each_owner_has_one_issue_that_closes_itself(host: CodeHost, run: Run) -> None:
    assert list(report_due(run, make())) == []
    said = list(report_due(run, make("a", "b", "c", "d")))
    assert [line.partition(":")[0] for line in said] == ["issue opened"] * 3
    assert sorted(issue.title for issue in host.issues.values()) == [
        "Kafka topics of @acme/pay on prod: 1 due",
        "Kafka topics of no owner on prod: 1 due",
        "Kafka topics of shop on prod: 2 due",
    ]
    (shop,) = (issue for issue in host.issues.values() if "shop" in issue.title)
    assert "| `a` | it expired on 2027-01-01: it is not known who uses it |" in shop.body
    assert "Nothing is deleted by this." in shop.body
    assert sorted(line.rpartition(" ")[2] for line in report_due(run, make("b", "d"))) == [
        "closed",
        "updated",
        "updated",
    ]
    assert shop.title == "Kafka topics of shop on prod: 1 due"
    assert sum(issue.open for issue in host.issues.values()) == 2
    list(report_due(run, make()))
    assert not any(issue.open for issue in host.issues.values())


def test_a_plan_of_some_topics_and_another_cluster_close_nothing(host: CodeHost, run: Run) -> None:
    list(report_due(run, make("a")))
    assert list(report_due(run, replace(make(), scope=Scope("b")))) == []
    assert list(report_due(run, replace(make(), cluster="lab"))) == []
    assert [issue.open for issue in host.issues.values()] == [True]
