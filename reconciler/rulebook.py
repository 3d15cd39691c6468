"""Every rule that a finding can name: one table, from which docs/rules.md is generated.

A rule's id is part of the interface: it stays when the wording of its messages changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its id and what it protects from, in one sentence."""

    id: str
    says: str


# Files: what can be read at all (spec.files, spec.load), and the form of documents (spec.shape).
_FILES: tuple[Rule, ...] = (
    Rule("estate-file", "Every YAML file of an estate is a regular file that can be read."),
    Rule("estate-link", "Links of an estate stay inside it, so nobody chooses what a run shows."),
    Rule("clusters-file", "An estate has at most one clusters.yaml, at its top, of one document."),
    Rule("file-size", "A file is small enough to be read by people, and to be read at all."),
    Rule("file-encoding", "Files are UTF-8 without control characters."),
    Rule("yaml-syntax", "Files are YAML."),
    Rule("yaml-tab", "YAML is indented with blanks: what a tab is worth differs by reader."),
    Rule("yaml-line-ends", "A line ends where git and editors see it end, so nothing hides."),
    Rule("yaml-depth", "Values are nested no deeper than a specification needs."),
    Rule("yaml-alias", "An alias follows its anchor, and aliases do not blow a document up."),
    Rule("yaml-key", "Keys of a map are plain words."),
    Rule("yaml-merge-key", "Merge keys are no part of YAML 1.2; profiles hold what is shared."),
    Rule("yaml-duplicate-key", "A key stands once in a map, so no value is dropped silently."),
    Rule("yaml-tag", "Values carry no YAML tags of their own."),
    Rule("document-start", "Each topic of a file is a document of its own, after a line of '---'."),
    Rule("document-form", "A document is a map of the keys that its kind has."),
    Rule("document-kind", "Of other tools, the KafkaTopics of Strimzi and Jikkou are read."),
    Rule("key-unknown", "A key that nobody reads is a mistake, not a comment."),
    Rule("key-missing", "A document carries the keys without which it means nothing."),
    Rule("value-missing", "A key has a value; what is not managed is left out."),
    Rule("value-form", "A value is the text, list or map that its key takes."),
    Rule("value-count", "Counts are plain decimal whole numbers, so 012 and 1e3 surprise nobody."),
    Rule("value-range", "Counts are in the range that Kafka can hold."),
    Rule("value-text", "What looks like a number or a flag is quoted where text is meant."),
    Rule("value-flag", "Flags are true or false, not yes, no, on or off."),
    Rule("value-choice", "A value of a fixed set is one of that set."),
    Rule("value-repeated", "A list names each thing once."),
)

# The estate as a whole: clusters, profiles, overrides, and who manages what (spec.rules).
_ESTATE: tuple[Rule, ...] = (
    Rule("estate-empty", "An estate without topics is nothing to do, and that is said."),
    Rule("cluster-unknown", "A topic names clusters that clusters.yaml has."),
    Rule("cluster-none", "A topic names at least one cluster, or leaves clusters out for all."),
    Rule("key-form", "Clusters and profiles have names that fit into paths, URLs and terminals."),
    Rule("profile-unknown", "A topic names a profile that clusters.yaml has."),
    Rule("override-untargeted", "An override is for a cluster that the topic goes to."),
    Rule("topic-duplicate", "A topic is written once; overrides say what differs on a cluster."),
    Rule("topic-ignored", "A topic is not both written and ignored."),
    Rule("topic-not-owned", "A topic is one that its estate owns, where clusters.yaml says which."),
    Rule("topic-not-managed", "A document that asks not to be managed is left alone, and named."),
    Rule("acknowledge-unknown", "Only risks that exist can be acknowledged."),
    Rule("cluster-id-form", "A cluster id is text as the cluster itself tells it."),
    Rule("kafka-version-form", "A Kafka version is quoted text, so that 4.10 is not 4.1."),
    Rule("kafka-version-newer", "A newer Kafka is checked by the newest catalogue there is."),
    Rule("kafka-version-older", "An older Kafka is checked by the oldest catalogue there is."),
    Rule("client-property-unknown", "Client properties carry the names that librdkafka knows."),
    Rule("client-property-runs", "No client property of an estate loads or runs anything."),
    Rule("secret-misplaced", "Secrets stay in what the client authenticates with."),
    Rule("secret-literal", "Secrets are referred to, never written into a file."),
    Rule("secret-reference", "References are ${env:NAME} or ${file:/absolute/path}."),
)

# Names of topics (spec.names).
_NAMES: tuple[Rule, ...] = (
    Rule("name-empty", "A topic has a name."),
    Rule("name-dots", "No topic is called '.' or '..': its log directory could not be."),
    Rule("name-length", "A topic's name has at most 249 characters."),
    Rule("name-characters", "A name holds ASCII letters, digits, '.', '_' and '-' only."),
    Rule("name-internal", "Topics that Kafka keeps for itself are not written in specs."),
    Rule("name-collides", "No two topics of a cluster are equal after '.' turns into '_'."),
)

# Topic configs, one by one and across fields (spec.configs, spec.rules).
_CONFIGS: tuple[Rule, ...] = (
    Rule("config-unknown", "A config is one that brokers of the cluster's Kafka version know."),
    Rule("config-internal", "Configs that Kafka keeps for its own tests are not set."),
    Rule("config-not-managed", "Configs that reassignment tools set and clear are left to them."),
    Rule("config-null", "A config that is written has a value."),
    Rule("config-type", "A value is of its config's type, and can be read one way only."),
    Rule("config-unit", "Durations and sizes are whole numbers of units that mean one thing."),
    Rule("config-range", "A number lies in the range that the brokers take."),
    Rule("config-choice", "A value is one that the brokers know, letter by letter."),
    Rule("config-too-long", "A value has at most 32,767 bytes: a longer one arrives as null."),
    Rule("config-lag-pair", "The shortest compaction lag does not exceed the longest."),
    Rule("tiered-needs-delete", "A tiered topic is deleted from, not compacted."),
    Rule("tiered-local-retention", "A tiered topic keeps no more locally than altogether."),
    Rule("tiered-copy-lag", "Records are copied to the remote tier before they go locally."),
    Rule("tiered-copy-disabled", "A tiered topic that copies nothing more keeps all locally."),
)

# What a team's own policy allows (policy), and how it is written (spec.policy_keys).
_POLICY: tuple[Rule, ...] = (
    Rule("policy-name", "A topic's name matches the pattern of its policy, from end to end."),
    Rule("policy-owner", "A topic names its owner where the policy requires one."),
    Rule("policy-description", "A topic describes its records where the policy requires that."),
    Rule("policy-partitions", "A topic has as many partitions as its policy allows."),
    Rule("policy-replication", "A topic has as many replicas as its policy allows."),
    Rule("policy-config", "A topic's file sets only configs that its policy leaves to it."),
    Rule("policy-config-missing", "Configs that a policy requires are set."),
    Rule("policy-config-value", "Configs are within the ranges and values of their policy."),
    Rule("policy-rule", "Rules that a team wrote itself hold for every topic and change."),
    Rule("policy-rule-open", "A rule answers true or false wherever it is asked."),
    Rule("policy-expression", "Rules are CEL, and speak of what there is."),
    Rule("policy-pattern", "A pattern is a regular expression as RE2 reads it."),
    Rule("policy-pattern-linear", "A pattern has only what can be matched in linear time."),
    Rule("policy-range", "A range has something in it: its least does not exceed its most."),
    Rule("config-not-offered", "Where a service knows fewer configs, specs ask for no others."),
)

# Replica assignments and counts that contradict each other (spec.rules).
_ASSIGNMENTS: tuple[Rule, ...] = (
    Rule("assignment-form", "An assignment has one row of broker ids for each partition."),
    Rule("assignment-consecutive", "Rows are for partitions 0, 1, 2 … without a gap."),
    Rule("assignment-row-empty", "A partition has at least one replica."),
    Rule("assignment-broker-twice", "A broker holds at most one replica of a partition."),
    Rule("assignment-lengths", "All partitions of a topic have the same number of replicas."),
    Rule("assignment-partitions", "partitions written beside an assignment is its row count."),
    Rule("assignment-replication", "replication_factor beside an assignment is its row length."),
    Rule(
        "min-insync-le-replication",
        "min.insync.replicas promises no more copies than there are replicas.",
    ),
)

# Wishes held against a live cluster (diff).
_DIFF: tuple[Rule, ...] = (
    Rule("partitions-never-shrink", "Kafka cannot remove partitions, and no topic is recreated."),
    Rule("replication-stays", "A replication factor is never changed: that would move replicas."),
    Rule("replicas-stay", "Existing replicas are never moved; only new partitions are placed."),
    Rule("expand-after-reassignment", "A topic under reassignment takes no new partitions."),
    Rule("expand-uniform-replication", "A topic of mixed replication takes no new partitions."),
    Rule("create-needs-counts", "A topic that does not exist needs partitions and replication."),
    Rule("name-collides-with-live", "No new topic may equal a live one after '.' turns into '_'."),
    Rule("rf-le-brokers", "A partition has at most one replica on each eligible broker."),
    Rule("racks-known", "Spreading over racks needs the rack of every broker, or of none."),
    Rule("broker-unknown", "An assignment names brokers that the cluster has."),
    Rule("broker-dead", "A dead broker takes nothing new."),
    Rule("broker-cordoned", "A broker whose log directories are all cordoned takes nothing new."),
    Rule("broker-excluded", "A broker named in exclude_brokers takes nothing new."),
    Rule("untiering-deletes", "Leaving the remote tier deletes what it holds, so that is said."),
    Rule("tiered-storage-off", "No topic is tiered where the brokers have no remote tier."),
    Rule("tiered-storage-unknown", "Where it is not known if brokers have a remote tier is said."),
    Rule("gradual-needs-limit", "Steps lead from a limit that is known to another one."),
    Rule("gradual-step", "What a plan leaves for the next ones is said."),
    Rule(
        "deletion-budget", "A plan deletes max_deletes topics at most: none unless it is written."
    ),
    Rule("deletion-disabled", "Where brokers delete no topics, no plan does."),
    Rule("deletion-internal", "A topic that Kafka keeps for itself is not deleted."),
    Rule("deletion-in-use", "A topic that an active consumer group uses is not deleted."),
    Rule("deletion-written", "A topic that was written to within unused_for is not deleted."),
    Rule("deletion-unseen", "A topic that cannot be seen to be unused is not deleted."),
    Rule("deletion-reassigning", "A topic whose replicas are on the move is not deleted."),
    Rule("config-disputed", "A config on which the brokers disagree is named and left alone."),
    Rule("not-managed", "What is live and outside the specs' reach is named and left alone."),
)

# What a run needs of a cluster: reach, identity, rights (kafka).
_CLUSTER: tuple[Rule, ...] = (
    Rule("secret-unresolved", "A secret that a client property refers to is there, and readable."),
    Rule("client-property-value", "Client properties have values that the client takes."),
    Rule("client-new", "What a request adds to clusters.yaml is connected to after its merge."),
    Rule(
        "client-changed", "Where a plan is read with another client than the estate's, it says so."
    ),
    Rule("connect-address", "A run knows where the brokers of its cluster are."),
    Rule("connect-host-unknown", "The names of brokers resolve."),
    Rule("connect-refused", "A broker listens at its address."),
    Rule("connect-not-kafka", "The port that a run talks to is a broker's."),
    Rule("connect-controller", "Topics are read from brokers, not from the controllers' port."),
    Rule("connect-tls-missing", "A listener with TLS is spoken to with TLS."),
    Rule("connect-tls-unwanted", "A listener without TLS is spoken to without."),
    Rule("connect-tls-untrusted", "A broker proves by its certificate that it is the one meant."),
    Rule("connect-tls-validity", "The certificates of brokers are valid today."),
    Rule("connect-tls-client", "Where brokers ask for a client's certificate, they accept it."),
    Rule("connect-sasl-missing", "A listener with SASL is spoken to with SASL."),
    Rule("connect-sasl-unwanted", "A listener without SASL is spoken to without."),
    Rule("connect-mechanism", "The SASL mechanism is one that the listener offers."),
    Rule("connect-credentials", "The brokers know the user and accept the proof."),
    Rule("connect-token", "An OAuth token can be had where the client fetches it."),
    Rule("connect-timeout", "Brokers answer within ten seconds."),
    Rule("fleet-time-limit", "A cluster of a fleet is read within the time that a job allows it."),
    Rule("connect-lost", "Brokers go on answering while a run needs them."),
    Rule("cluster-id", "The cluster is the one that clusters.yaml expects."),
    Rule("cluster-rights", "The account holds the rights that a run needs."),
    Rule("cluster-answer", "A cluster answers what it is asked."),
    Rule("reassignments-unseen", "A plan knows which replicas are on the move."),
    Rule("lock-held", "One apply at a time changes a cluster."),
    Rule("lock-lost", "An apply that lost the lock of its cluster sends nothing more."),
    Rule("lock-unavailable", "An apply holds the lock of its cluster, or is told to do without."),
)

# Snapshots: files that stand in for a cluster (snapshot).
_SNAPSHOTS: tuple[Rule, ...] = (
    Rule("snapshot-file", "A snapshot is a file of UTF-8 text that can be read."),
    Rule("snapshot-form", "A snapshot has the form that its schema describes."),
    Rule("snapshot-version", "A snapshot of a newer major format is not read."),
    Rule("snapshot-assumed", "What a snapshot leaves out and a plan rests on is said."),
)

# Plan files, stale plans and outcomes (plan, apply).
_PLAN: tuple[Rule, ...] = (
    Rule(
        "risk-not-acknowledged",
        "Data loss, and reordering of compacted topics, is accepted by name.",
    ),
    Rule("guard-max-changed", "One plan changes no larger a share of a cluster than is allowed."),
    Rule("plan-form", "A plan file has the form that its schema describes."),
    Rule("plan-version", "A plan file of a newer major format is not read."),
    Rule("plan-tampered", "A plan file matches the fingerprint it carries."),
    Rule("plan-cluster", "A plan is applied to the cluster that it was made for."),
    Rule("plan-commit", "A saved plan is applied from the specs that it was made of."),
    Rule("plan-scope", "A plan that leaves topics out says so, and what left the files."),
    Rule("plan-unexpected", "A fresh plan is applied only if it is the one that was approved."),
    Rule("audit-topic", "Where records of applies are to be kept, they can be."),
    Rule("audit-lost", "A record of an apply that could not be kept is shown instead."),
    Rule("plan-stale", "What a plan rests on has not moved since it was made."),
)

# Plans run for real on a throwaway cluster (rehearse).
_REHEARSAL: tuple[Rule, ...] = (
    Rule("rehearsal-fits", "A throwaway cluster fits into the machine that it is to run on."),
    Rule("rehearsal-differs", "Where a throwaway cluster is unlike the one it stands for is said."),
)

# Estates written for clusters and files that are there already (adopt).
_ADOPTION: tuple[Rule, ...] = (
    Rule("import-left-out", "A topic that no spec can describe as it is stays out, and is named."),
    Rule("import-not-managed", "What a spec cannot say of a topic is left open, and named."),
    Rule("import-kept", "What people wrote and an import cannot rewrite is kept, and named."),
    Rule("import-foreign", "Topics that other software creates for itself are named by an import."),
    Rule("import-not-carried", "What other tools' files say and no spec can is named."),
    Rule("import-differs", "A plan after an import is empty; what keeps it from that is said."),
)

# What a job over the fleet needs, and what its lake holds (fleet).
_FLEET: tuple[Rule, ...] = (
    Rule("lake-collection-name", "A collection is named by a valid time in UTC."),
    Rule("lake-collection-ahead", "A collection is not named by a time that is still to come."),
    Rule("lake-collection-unknown", "A collection that a job reads is published in the lake."),
    Rule("lake-version", "A lake has the layout that this release reads and writes."),
    Rule("lake-publication", "Every publication in a lake is complete."),
    Rule("lake-table-missing", "A published collection has all of its tables."),
    Rule("lake-rows", "A table has as many rows of each cluster as were published."),
    Rule("lake-write", "A collection is published with every row that was written."),
    Rule("fleet-disk-full", "The disks of the lake and of Spark have room for a job."),
    Rule("fleet-memory", "Spark has the memory that a job needs."),
    Rule("fleet-file", "Files of the lake can be read and written."),
    Rule("fleet-spark", "Spark takes a job to its end."),
)

# What a workflow tells a code host, and asks it (forge).
_FORGE: tuple[Rule, ...] = (
    Rule("forge-access", "A workflow's token may write the comments and issues it is to write."),
    Rule("forge-answer", "A code host answers what it is asked."),
    Rule("plan-unapproved", "What is applied on merge was shown in the request that was merged."),
)

STAGES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "files": _FILES,
        "estate": _ESTATE,
        "names": _NAMES,
        "configs": _CONFIGS,
        "policies": _POLICY,
        "assignments": _ASSIGNMENTS,
        "differences": _DIFF,
        "cluster": _CLUSTER,
        "snapshots": _SNAPSHOTS,
        "plan and apply": _PLAN,
        "rehearsal": _REHEARSAL,
        "adoption": _ADOPTION,
        "fleet": _FLEET,
        "workflows": _FORGE,
    }
)

RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.id: rule for rules in STAGES.values() for rule in rules}
)
