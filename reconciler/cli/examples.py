"""Examples of every command, which its `--help` ends with."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "validate": (
            "reconciler validate",
            "reconciler validate specs --format sarif > findings.sarif",
            "reconciler validate --write-baseline",
        ),
        "fmt": (
            "reconciler fmt",
            "reconciler fmt topics/orders.yaml",
            "reconciler fmt --check --diff",
        ),
        "plan": (
            "reconciler plan --cluster prod-eu",
            "reconciler plan --cluster prod-eu --topic 'orders.*' --out plan.json",
            "reconciler plan --all-clusters --detailed-exitcode",
            "reconciler plan --cluster prod-eu --explain orders.events",
        ),
        "show": ("reconciler show plan.json", "reconciler show plan.json --format markdown"),
        "apply": (
            "reconciler apply --cluster prod-eu",
            "reconciler apply plan.json --journal apply.jsonl",
            "reconciler apply --cluster prod-eu --check",
        ),
        "init": (
            "reconciler init",
            "reconciler init --cluster prod=broker-1:9093 --host github",
            "reconciler init --cluster prod=broker-1:9093 --from-cluster --dry-run",
            "reconciler init --update",
        ),
        "doctor": ("reconciler doctor", "reconciler doctor --offline"),
        "history": (
            "reconciler history --cluster prod-eu --since 7d",
            "reconciler history --cluster prod-eu --last",
            "reconciler history --journal apply.jsonl --topic 'orders.*'",
        ),
        "elect": ("reconciler elect --cluster prod-eu --out elect.json",),
        "rebalance": (
            "reconciler rebalance --cluster prod-eu --brokers 10,11 --out moves.json",
            "reconciler rebalance --cluster prod-eu --max-bytes 500GiB",
            "reconciler rebalance --cluster prod-eu --by disk --within 10% --out moves.json",
            "reconciler rebalance --cluster prod-eu --by write --leaders-only",
        ),
        "rehearse": (
            "reconciler rehearse plan.json",
            "reconciler rehearse --cluster prod-eu --against prod-eu.snapshot.json",
        ),
        "import": (
            "reconciler import --cluster prod-eu --dry-run topics",
            "reconciler import --cluster prod-eu --ignore 'connect-*' topics",
            "reconciler import --cluster prod-eu --topic clicks.raw --owner web-team topics",
            "reconciler import --cluster prod-eu --absent 'orders.old.*' topics",
            "reconciler import --from strimzi k8s/topics topics",
        ),
        "get topics": (
            "reconciler get topics --cluster prod-eu --owner payments-team",
            "reconciler get topics --cluster prod-eu --unmanaged --sizes",
            "reconciler get topics --cluster prod-eu --idle 30d",
        ),
        "get partitions": (
            "reconciler get partitions --cluster prod-eu --unhealthy",
            "reconciler get partitions --cluster prod-eu --topic orders.events",
        ),
        "get brokers": ("reconciler get brokers --cluster prod-eu --watch",),
        "get groups": ("reconciler get groups --cluster prod-eu --topic orders.events",),
        "get configs": (
            "reconciler get configs --cluster prod-eu --topic 'orders.*'",
            "reconciler get configs --cluster prod-eu --config retention.ms",
        ),
        "describe topic": (
            "reconciler describe topic orders.events --cluster prod-eu",
            "reconciler describe topic orders.events --against prod-eu.snapshot.json",
        ),
        "describe broker": ("reconciler describe broker 3 --cluster prod-eu",),
        "moves status": (
            "reconciler moves status --cluster prod-eu --watch",
            "reconciler moves status --bootstrap-servers broker-1:9092",
        ),
        "moves pause": ("reconciler moves pause --cluster prod-eu",),
        "moves rate": (
            "reconciler moves rate 30MiB --cluster prod-eu",
            "reconciler moves rate unlimited --cluster prod-eu",
        ),
        "moves cancel": ("reconciler moves cancel --plan moves.json",),
        "moves settle": ("reconciler moves settle --cluster prod-eu --stop-after 100m",),
        "moves unthrottle": (
            "reconciler moves unthrottle --cluster prod-eu --topic orders.events",
            "reconciler moves unthrottle --cluster prod-eu --broker 3 --default",
        ),
        "moves export": ("reconciler moves export moves.json > reassignment.json",),
        "moves import": (
            "reconciler moves import reassignment.json --cluster prod-eu --out moves.json",
        ),
        "health": (
            "reconciler health --cluster prod-eu",
            "reconciler health --cluster prod-eu --format json",
            "reconciler health --cluster prod-eu --against prod-eu.snapshot.json",
        ),
        "snapshot": (
            "reconciler snapshot --cluster prod-eu --out prod-eu.snapshot.json",
            "reconciler snapshot --cluster prod-eu --measure 10m --out busy.json",
            "reconciler snapshot --cluster prod-eu --since busy.json --out busier.json",
        ),
        "grants": (
            "reconciler grants --cluster prod-eu",
            "reconciler grants --cluster prod-eu --format terraform > grants.tf",
            "reconciler grants --cluster prod-eu --account applier --format iam",
            "reconciler grants --cluster prod-eu --account applier --check",
        ),
        "simulate": (
            "reconciler simulate --brokers 6 --racks 3 --topic a=12x3 --lose-rack rack0",
            "reconciler simulate --against prod-eu.json --add-brokers 2 --rebalance",
        ),
        "watch": (
            "reconciler watch --cluster prod-eu",
            "reconciler watch --all-clusters --every 5m --listen 0.0.0.0:19308",
        ),
        "fleet run": ("reconciler fleet run --lake lake --page fleet.html",),
        "fleet collect": ("reconciler fleet collect --lake lake --cluster prod-eu",),
        "fleet plan": (
            "reconciler fleet plan --lake lake --out plans",
            "reconciler fleet plan --lake lake --live --detailed-exitcode",
        ),
        "fleet audit": (
            "reconciler fleet audit --lake lake --severity error",
            "reconciler fleet audit --lake lake --cluster prod-eu --format json",
        ),
        "fleet history": ("reconciler fleet history --lake lake --topic 'orders.*'",),
        "fleet page": ("reconciler fleet page --lake lake --out fleet.html",),
        "fleet lake list": ("reconciler fleet lake list --lake lake",),
        "fleet lake check": ("reconciler fleet lake check --lake lake",),
        "fleet lake keep": ("reconciler fleet lake keep --lake lake --days 400",),
        "fleet lake compact": ("reconciler fleet lake compact --lake lake",),
        "fleet lake remove": ("reconciler fleet lake remove 20261121T030000Z --lake lake",),
        "fleet metrics": ("reconciler fleet metrics fleet.prom --lake lake",),
        "fleet generate": ("reconciler fleet generate --lake lake --clusters 3 --troubles",),
        "sandbox up": (
            "reconciler sandbox up --brokers 6 --racks 3",
            "reconciler sandbox up --like prod-eu.snapshot.json",
        ),
        "sandbox status": ("reconciler sandbox status",),
        "sandbox down": ("reconciler sandbox down",),
        "sandbox stop-broker": ("reconciler sandbox stop-broker 2",),
        "sandbox start-broker": ("reconciler sandbox start-broker 2",),
        "report plan": (
            "reconciler report plan --cluster prod --plan plan.json --errors plan.log",
        ),
        "report drift": (
            "reconciler report drift --cluster prod --plan plan.json --errors plan.log",
        ),
        "report approved": ("reconciler report approved --cluster prod-eu --out approved.json",),
        "report result": (
            "reconciler report result --cluster prod --plan plan.json --journal apply.jsonl",
        ),
        "report accepted": (
            "reconciler report accepted --cluster prod --plan plan.json --out accepted.json",
        ),
        "report gradual": ("reconciler report gradual --cluster prod-eu --plan plan.json",),
        "report uneven": ("reconciler report uneven --cluster prod-eu --out need.json",),
        "report request": ("reconciler report request --cluster prod-eu --need need.json",),
        "report stages": ("""reconciler report stages --clusters '["staging", "prod-eu"]'""",),
        "report notify": (
            "reconciler report notify drift --cluster prod --plan plan.json",
            "reconciler report notify apply --cluster prod --plan plan.json --format json",
        ),
        "owners": (
            "reconciler owners",
            "reconciler owners --format codeowners --org shop > .github/CODEOWNERS",
        ),
        "completion": (
            "reconciler completion bash > ~/.reconciler-completion",
            "reconciler completion zsh > ~/.zfunc/_reconciler",
            "reconciler completion fish > ~/.config/fish/completions/reconciler.fish",
        ),
        "schema": ("reconciler schema topic > schemas/topic.schema.json",),
    }
)
"""The examples by the words of the command."""
