"""The nouns that every stage shares: brokers, topic specs and states, steps, plans, outcomes.

Belongs here: frozen values, and functions of a single value. A stage takes some of these values and
returns others. Forbidden here: all I/O.
"""

from typing import TYPE_CHECKING

from reconciler.exports import export_lazily

if TYPE_CHECKING:
    from reconciler.model.cluster import (
        EMPTY,
        INTERNAL_TOPICS,
        RISKY_FIELDS,
        SHORT,
        AcceptedChange,
        AcknowledgedEntry,
        Assignment,
        Broker,
        ClusterState,
        Guards,
        Replicas,
        Risk,
        TopicSpec,
        TopicState,
        TopicUsage,
    )
    from reconciler.model.moves import (
        MIN_INSYNC,
        UNLIMITED,
        BrokerTraffic,
        DefaultRate,
        DirectoryPeak,
        Forecast,
        LogDirectory,
        MoveKind,
        MovePolicy,
        MovesReading,
        PartitionState,
        Place,
        PlannedDrain,
        PlannedMoves,
        RateSource,
        Reassignment,
        ThrottleList,
        ThrottleRate,
        ThrottleSide,
        find_unused_lists,
        read_default,
    )
    from reconciler.model.outcomes import Answer, AnswerKind, Outcome, OutcomeKind
    from reconciler.model.plan import (
        Balance,
        Commit,
        Deletion,
        DriftedTopic,
        FieldValue,
        Level,
        LevelResult,
        Plan,
        PlannedTopic,
        RefusedField,
        RiskNote,
        Scope,
        Spread,
        TopicImage,
        Weighed,
        is_chosen,
        list_unmatched,
    )
    from reconciler.model.steps import (
        STEPS,
        ConfigureTopic,
        CreateTopic,
        DeleteTopic,
        ElectLeaders,
        ExpandTopic,
        MoveReplicas,
        ReorderReplicas,
        Step,
        Verb,
        brokers_of,
        has_steps,
        is_deletion,
        steps_of,
    )

__all__ = [
    "EMPTY",
    "INTERNAL_TOPICS",
    "MIN_INSYNC",
    "RISKY_FIELDS",
    "SHORT",
    "STEPS",
    "UNLIMITED",
    "AcceptedChange",
    "AcknowledgedEntry",
    "Answer",
    "AnswerKind",
    "Assignment",
    "Balance",
    "Broker",
    "BrokerTraffic",
    "ClusterState",
    "Commit",
    "ConfigureTopic",
    "CreateTopic",
    "DefaultRate",
    "DeleteTopic",
    "Deletion",
    "DirectoryPeak",
    "DriftedTopic",
    "ElectLeaders",
    "ExpandTopic",
    "FieldValue",
    "Forecast",
    "Guards",
    "Level",
    "LevelResult",
    "LogDirectory",
    "MoveKind",
    "MovePolicy",
    "MoveReplicas",
    "MovesReading",
    "Outcome",
    "OutcomeKind",
    "PartitionState",
    "Place",
    "Plan",
    "PlannedDrain",
    "PlannedMoves",
    "PlannedTopic",
    "RateSource",
    "Reassignment",
    "RefusedField",
    "ReorderReplicas",
    "Replicas",
    "Risk",
    "RiskNote",
    "Scope",
    "Spread",
    "Step",
    "ThrottleList",
    "ThrottleRate",
    "ThrottleSide",
    "TopicImage",
    "TopicSpec",
    "TopicState",
    "TopicUsage",
    "Verb",
    "Weighed",
    "brokers_of",
    "find_unused_lists",
    "has_steps",
    "is_chosen",
    "is_deletion",
    "list_unmatched",
    "read_default",
    "steps_of",
]

__getattr__ = export_lazily(
    __name__,
    {
        "cluster": (
            "EMPTY INTERNAL_TOPICS RISKY_FIELDS SHORT AcceptedChange AcknowledgedEntry Assignment "
            "Broker ClusterState Guards Replicas Risk TopicSpec TopicState TopicUsage"
        ),
        "moves": (
            "MIN_INSYNC UNLIMITED BrokerTraffic DefaultRate DirectoryPeak Forecast LogDirectory "
            "MoveKind MovePolicy MovesReading PartitionState Place PlannedDrain PlannedMoves "
            "RateSource Reassignment ThrottleList ThrottleRate ThrottleSide "
            "find_unused_lists read_default"
        ),
        "outcomes": "Answer AnswerKind Outcome OutcomeKind",
        "plan": (
            "Balance Commit Deletion DriftedTopic FieldValue Level LevelResult Plan PlannedTopic "
            "RefusedField RiskNote Scope Spread TopicImage Weighed is_chosen list_unmatched"
        ),
        "steps": (
            "STEPS ConfigureTopic CreateTopic DeleteTopic ElectLeaders ExpandTopic MoveReplicas "
            "ReorderReplicas Step Verb brokers_of has_steps is_deletion steps_of"
        ),
    },
)
"""Reading specs needs a few of these: the others are imported when they are asked for."""
