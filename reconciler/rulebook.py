"""Every rule that a finding can name, and where the documentation explains it.

docs/reference/rules.md is generated from this table.

A rule's id is part of the interface: it stays the same when the wording of its messages changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

SITE = "https://kafka-reconciler.github.io/reconciler/latest"
"""Where releases publish docs/. The anchors of rules, commands and keys there stay the same."""


def spell_page(page: str, anchor: str = "") -> str:
    """Return the address of a page: its path below docs/ without `.md`, such as how-to/install."""
    return f"{SITE}/{page}.html{anchor and '#'}{anchor}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its id and what must hold, in one sentence."""

    id: str
    says: str


# Files: what can be read at all (spec.syntax), and the form of documents (spec.declarations).
_FILES: tuple[Rule, ...] = (
    Rule("estate-file", "Every YAML file of an estate is a regular, readable file."),
    Rule(
        "estate-link", "Symbolic links stay inside the estate, so no link can expose another file."
    ),
    Rule(
        "base-link",
        "An estate in an earlier commit is not behind a symbolic link or a submodule.",
    ),
    Rule(
        "clusters-file", "An estate has at most one clusters.yaml, at its top, with one document."
    ),
    Rule("file-size", "A file is not larger than people and parsers can read."),
    Rule("file-encoding", "Files are UTF-8 without control characters."),
    Rule("yaml-syntax", "Files are valid YAML."),
    Rule("yaml-tab", "YAML is indented with spaces, because readers interpret tabs differently."),
    Rule("yaml-line-ends", "Lines end where git and editors see the end, so no content is hidden."),
    Rule("yaml-depth", "Values are nested no deeper than a spec needs."),
    Rule(
        "yaml-alias",
        "An alias follows its anchor, and aliases do not expand a document without limit.",
    ),
    Rule("yaml-key", "Keys of a map are plain text."),
    Rule("yaml-merge-key", "Merge keys are not part of YAML 1.2; use profiles for shared values."),
    Rule(
        "yaml-duplicate-key", "A key appears only once in a map, so no value is dropped silently."
    ),
    Rule("yaml-tag", "Values have no custom YAML tags."),
    Rule("document-start", "Each topic of a file is a separate document, after a line of '---'."),
    Rule("document-form", "A document is a map with the keys of its kind."),
    Rule("document-kind", "Of other tools, only the KafkaTopics of Strimzi and Jikkou are read."),
    Rule("key-unknown", "An unknown key is an error, because nothing reads it."),
    Rule("key-missing", "A document has all required keys."),
    Rule("value-missing", "A key has a value; omit a key that is not managed."),
    Rule("value-form", "A value is a text, a list or a map, as its key requires."),
    Rule("value-count", "Counts are plain decimal integers, so 012 and 1e3 are errors."),
    Rule("value-range", "Counts are in the range that Kafka supports."),
    Rule("value-text", "A text that looks like a number or a boolean is quoted."),
    Rule("value-flag", "Booleans are true or false, not yes, no, on or off."),
    Rule("value-choice", "A value with a fixed set of choices is one of them."),
    Rule("value-repeated", "A list has no duplicates."),
)

# The entire estate: clusters, profiles, overrides, and ownership (spec.rules).
_ESTATE: tuple[Rule, ...] = (
    Rule("estate-empty", "An estate without topics is reported."),
    Rule("cluster-unknown", "A topic or a stage names only clusters in clusters.yaml."),
    Rule(
        "cluster-none",
        "A topic names at least one cluster, or omits clusters to be on all of them.",
    ),
    Rule("stage-missing", "If clusters.yaml has stages, every cluster is in one of them."),
    Rule("stages-most", "A merge reaches the clusters in at most 5 stages."),
    Rule(
        "cluster-environment",
        "The environments of two clusters have different names, so each has its own secrets.",
    ),
    Rule("key-form", "Names of clusters and profiles are valid in paths, URLs and terminals."),
    Rule("profile-unknown", "A topic names a profile in clusters.yaml."),
    Rule("override-untargeted", "An override names a cluster of the topic."),
    Rule(
        "topic-duplicate",
        "A topic has only one document; overrides hold the differences between clusters.",
    ),
    Rule("topic-ignored", "A topic with a spec is not ignored."),
    Rule("topic-not-owned", "If clusters.yaml has owns, every topic with a spec matches it."),
    Rule(
        "owner-form",
        "The name of an owner has only ASCII letters, digits, single blanks and a few marks.",
    ),
    Rule("owner-spelling", "An owner is spelled in one way in the entire estate."),
    Rule("owner-unknown", "If clusters.yaml has owners, every owner of a topic is one of them."),
    Rule("label-form", "The keys and values of labels have only ASCII letters, digits and marks."),
    Rule("topic-not-managed", "A document that asks not to be managed is left alone and reported."),
    Rule("acknowledge-unknown", "Only known risks can be acknowledged."),
    Rule(
        "acknowledge-form",
        "An acknowledgement of a single change names a field and both of its values.",
    ),
    Rule("cluster-id-form", "A cluster id is a text in the form that clusters report."),
    Rule("kafka-version-form", "A Kafka version is a quoted text, because 4.10 is not 4.1."),
    Rule("kafka-version-newer", "A newer Kafka is checked with the newest catalogue."),
    Rule("kafka-version-older", "An older Kafka is checked with the oldest catalogue."),
    Rule("drain-allowed", "drain_brokers moves replicas, so moves.allow of its cluster has drain."),
    Rule(
        "replication-allowed",
        "internal_replication_factor moves replicas, so moves.allow has replication.",
    ),
    Rule("rebalance-allowed", "rebalance moves replicas, so moves.allow of its cluster has it."),
    Rule(
        "placement-keys",
        "If the brokers place replicas, no key or option places or moves them.",
    ),
    Rule("client-property-unknown", "Client properties have names that librdkafka knows."),
    Rule("client-property-runs", "No client property of an estate loads or runs code."),
    Rule("secret-misplaced", "Secrets are only in properties that authenticate the client."),
    Rule("secret-literal", "Secrets are references, never literal values."),
    Rule("secret-reference", "References are ${env:NAME} or ${file:/absolute/path}."),
)

# Names of topics (spec.names).
_NAMES: tuple[Rule, ...] = (
    Rule("name-empty", "A topic has a name."),
    Rule("name-dots", "No topic is called '.' or '..', because these are invalid directory names."),
    Rule("name-length", "A topic's name has at most 249 characters."),
    Rule("name-characters", "A name holds ASCII letters, digits, '.', '_' and '-' only."),
    Rule("name-internal", "Internal topics of Kafka have no specs."),
    Rule("name-collides", "No two topics of a cluster have names that differ only in '.' and '_'."),
)

# Topic configs, one by one and across fields (spec.configs, spec.rules).
_CONFIGS: tuple[Rule, ...] = (
    Rule("config-unknown", "A config exists in the cluster's Kafka version."),
    Rule("config-internal", "Kafka's internal test configs are not set."),
    Rule("config-not-managed", "Configs that reassignment tools set and clear are not managed."),
    Rule("config-null", "A config has a value."),
    Rule("config-type", "A value has the type of its config, and is unambiguous."),
    Rule("config-unit", "Durations and sizes are integers with unambiguous units."),
    Rule("config-range", "A number is in the range that the brokers accept."),
    Rule("config-choice", "A value is one that the brokers accept; case matters."),
    Rule("config-too-long", "A value has at most 32,767 bytes; a longer one arrives as null."),
    Rule("config-lag-pair", "The minimum compaction lag does not exceed the maximum."),
    Rule("tiered-needs-delete", "A tiered topic uses cleanup.policy delete, not compact."),
    Rule(
        "tiered-local-retention",
        "A tiered topic's local retention does not exceed its total retention.",
    ),
    Rule(
        "tiered-copy-lag", "Records are copied to the remote tier before they are deleted locally."
    ),
    Rule("tiered-copy-disabled", "A tiered topic with copying disabled keeps all records locally."),
)

# Policies of a team (policy), and their form (spec.policy_keys).
_POLICY: tuple[Rule, ...] = (
    Rule("policy-name", "A topic's entire name matches the pattern of its policy."),
    Rule("policy-owner", "A topic has an owner if its policy requires one."),
    Rule("policy-description", "A topic has a description if its policy requires one."),
    Rule("policy-partitions", "A topic has a number of partitions that its policy allows."),
    Rule("policy-replication", "A topic has a number of replicas that its policy allows."),
    Rule("policy-config", "A topic's file sets only configs that its policy allows there."),
    Rule("policy-config-missing", "Configs that a policy requires are set."),
    Rule("policy-config-value", "Configs are within the ranges and values of their policy."),
    Rule("policy-label-missing", "A topic has every label that its policy requires."),
    Rule("policy-label-value", "A label has one of the values that its policy allows."),
    Rule("quota-per-label", "All topics with the same label together stay within its quota."),
    Rule("quota-per-owner", "All topics of an owner together stay within the owner's quota."),
    Rule("policy-rule", "A team's own rules hold for every topic and change."),
    Rule("policy-rule-open", "A rule evaluates to true or false for every subject."),
    Rule("policy-expression", "Rules are valid CEL and use only known names."),
    Rule("policy-expression-cost", "The evaluation of a rule takes little memory and work."),
    Rule("policy-pattern", "A pattern is a regular expression of RE2."),
    Rule("policy-pattern-linear", "A pattern can be matched in linear time."),
    Rule("policy-baseline", "What the baseline of a policy exempts is reported, rule by rule."),
    Rule(
        "policy-baseline-form",
        "An entry of a baseline names a broken limit, and no other entry repeats it.",
    ),
    Rule("policy-baseline-stale", "A baseline exempts no more than what breaks a limit now."),
    Rule("policy-baseline-reason", "Each entry of a baseline gives a reason."),
    Rule("policy-range", "A range is not empty: its minimum does not exceed its maximum."),
    Rule("config-not-offered", "Specs set only configs that the managed service supports."),
    Rule("service-config", "Specs set only configs that the service lets anyone set."),
    Rule(
        "service-replication",
        "Specs ask for the replication factor that the service gives every topic.",
    ),
    Rule("service-value", "Specs set no value that the service refuses or replaces."),
    Rule("service-elsewhere", "Topics of the service are managed through Kafka."),
    Rule(
        "service-balancer",
        "If the service refuses or undoes other moves, moves are allowed only if clusters.yaml "
        "states that its balancer is off.",
    ),
    Rule("service-throttle", "Moves have a rate only if the brokers can throttle replication."),
    Rule(
        "service-alive",
        "If the service requires it, all replicas of a reassignment are on living brokers.",
    ),
    Rule("service-mover", "Only reconciler moves replicas while a plan of moves is applied."),
    Rule("service-likely", "A cluster names the service that its address belongs to."),
)

# Replica assignments and counts that contradict each other (spec.rules).
_ASSIGNMENTS: tuple[Rule, ...] = (
    Rule("assignment-form", "An assignment has one row of broker ids for each partition."),
    Rule("assignment-consecutive", "Rows are for partitions 0, 1, 2 … without gaps."),
    Rule("assignment-row-empty", "A partition has at least one replica."),
    Rule("assignment-broker-twice", "A broker holds at most one replica of a partition."),
    Rule("assignment-lengths", "All partitions of a topic have the same number of replicas."),
    Rule("placement-assignment", "Where the brokers place replicas, topics have no assignment."),
    Rule("assignment-partitions", "partitions next to an assignment equals its number of rows."),
    Rule(
        "assignment-replication", "replication_factor next to an assignment equals its row length."
    ),
    Rule(
        "min-insync-le-replication", "min.insync.replicas does not exceed the number of replicas."
    ),
)

# Specs compared with a live cluster (diff).
_DIFF: tuple[Rule, ...] = (
    Rule(
        "partitions-never-shrink", "Kafka cannot remove partitions, and topics are never recreated."
    ),
    Rule("service-create-only", "No config changes that the service sets only at creation."),
    Rule(
        "replication-stays",
        "A replication factor changes only if the cluster allows moves for replication.",
    ),
    Rule(
        "replicas-stay",
        "Rows of existing partitions change only if the cluster allows moves for assignment.",
    ),
    Rule("moves-pending", "A plan of changes reports what it leaves to a plan of moves."),
    Rule(
        "moves-unhealthy",
        "A partition moves only if a replica is alive and in sync, and enough of them stay.",
    ),
    Rule(
        "drain-impossible", "A broker is drained only if others can hold every one of its replicas."
    ),
    Rule("broker-drained", "No assignment names a broker in drain_brokers."),
    Rule("internal-replication", "Internal topics have as many replicas as most other topics."),
    Rule("drain-unnamed", "A plan reports the unmanaged topics that a drain moves."),
    Rule("drain-incomplete", "A plan reports what stays on a broker in drain_brokers, and why."),
    Rule("drain-last-of-rack", "A plan reports a rack in which a drain leaves no able broker."),
    Rule("reassignment-file", "A file of kafka-reassign-partitions is well-formed."),
    Rule("reassignment-rows", "Its rows are of partitions that exist, and agree with their specs."),
    Rule(
        "directories-left",
        "A plan between log directories reports the replicas and brokers that it leaves as they "
        "are, and why.",
    ),
    Rule("rebalance-left", "A rebalance reports the topics that it leaves as they are, and why."),
    Rule(
        "directory-offline", "A plan reports log directories that are offline, and replicas there."
    ),
    Rule("rebalance-limited", "A rebalance reports what --max-bytes keeps it from moving."),
    Rule("rebalance-uneven", "A rebalance reports what stays uneven because of --brokers."),
    Rule("rebalance-unable", "A rebalance names only brokers and loads that the cluster has."),
    Rule("rebalance-waits", "A plan makes the rebalance of clusters.yaml after all other moves."),
    Rule("rebalance-over", "A plan reports a rebalance in clusters.yaml whose date has come."),
    Rule("drain-done", "A plan reports that a broker in drain_brokers stores nothing."),
    Rule(
        "moves-throttle-left",
        "The rate of a plan of moves slows no replicas that another tool left in a throttle list.",
    ),
    Rule("moves-foreign", "What another tool or run moves is reported and left alone."),
    Rule(
        "moves-min-insync",
        "A plan reports if it lowers min.insync.replicas while replicas are copied.",
    ),
    Rule(
        "min-insync-le-in-sync",
        "min.insync.replicas rises only if enough replicas of every partition are in sync.",
    ),
    Rule("expand-after-reassignment", "A topic under reassignment takes no new partitions."),
    Rule(
        "expand-uniform-replication",
        "A topic with mixed replication factors takes no new partitions.",
    ),
    Rule("create-needs-counts", "A new topic needs partitions and replication_factor."),
    Rule(
        "name-collides-with-live",
        "No new topic's name differs from a live one only in '.' and '_'.",
    ),
    Rule("rf-le-brokers", "A partition has at most one replica on each eligible broker."),
    Rule("racks-known", "To spread over racks, all brokers must have a rack, or none."),
    Rule("broker-unknown", "An assignment names only brokers of the cluster."),
    Rule(
        "broker-not-registered",
        "A plan reports ids in drain_brokers, exclude_brokers and capacity without a broker.",
    ),
    Rule("broker-dead", "A dead broker takes no new replicas."),
    Rule(
        "broker-cordoned", "A broker whose log directories are all cordoned takes no new replicas."
    ),
    Rule("broker-excluded", "A broker in exclude_brokers takes no new replicas."),
    Rule("untiering-deletes", "Leaving the remote tier deletes its records; this is reported."),
    Rule("tiered-storage-off", "A topic is tiered only if the brokers have a remote tier."),
    Rule(
        "tiered-storage-unknown",
        "If it is unknown whether brokers have a remote tier, this is reported.",
    ),
    Rule(
        "gradual-needs-limit",
        "Retention steps need a live limit to start from and a limit to end at.",
    ),
    Rule("rates-pause", "A plan says how long an apply pauses to keep to the cluster's rates."),
    Rule("gradual-step", "Retention steps that remain for later plans are reported."),
    Rule("deletion-budget", "A plan deletes at most max_deletes topics; the default is none."),
    Rule("deletion-disabled", "Nothing is deleted if the brokers do not delete topics."),
    Rule("deletion-internal", "An internal topic of Kafka is not deleted."),
    Rule("deletion-in-use", "A topic that an active consumer group uses is not deleted."),
    Rule("deletion-written", "A topic that was written to within unused_for is not deleted."),
    Rule("deletion-unseen", "A topic is not deleted if it cannot be verified that it is unused."),
    Rule("deletion-reassigning", "A topic under reassignment is not deleted."),
    Rule("config-disputed", "A config on which the brokers disagree is reported and left alone."),
    Rule("not-managed", "Live settings that specs cannot manage are reported and left alone."),
)

# What a run needs from a cluster: connection, identity, rights (kafka).
_CLUSTER: tuple[Rule, ...] = (
    Rule("secret-unresolved", "A secret that a client property refers to exists and is readable."),
    Rule("client-property-value", "Client properties have values that the client accepts."),
    Rule("client-authentication", "Client properties that authenticate fit together."),
    Rule("client-new", "Nothing connects to a cluster that a pull request adds before the merge."),
    Rule("client-file", "Files that a client of the base names are unchanged since the base."),
    Rule(
        "client-changed",
        "A plan says if another client than the one in the estate read the cluster.",
    ),
    Rule("connect-address", "A run has the addresses of the brokers."),
    Rule("connect-host-unknown", "The host names of brokers resolve."),
    Rule("connect-refused", "A broker listens at its address."),
    Rule("connect-not-kafka", "The port belongs to a Kafka broker."),
    Rule(
        "connect-controller", "Topics are read from brokers, not from the port of the controllers."
    ),
    Rule("connect-tls-missing", "The client uses TLS on a listener with TLS."),
    Rule("connect-tls-unwanted", "The client does not use TLS on a listener without TLS."),
    Rule("connect-tls-untrusted", "A broker's certificate is trusted and matches its host name."),
    Rule("connect-tls-validity", "The certificates of brokers are valid today."),
    Rule("connect-tls-client", "If brokers require a client certificate, they accept it."),
    Rule("connect-sasl-missing", "The client uses SASL on a listener with SASL."),
    Rule("connect-sasl-unwanted", "The client does not use SASL on a listener without SASL."),
    Rule("connect-mechanism", "The listener offers the SASL mechanism."),
    Rule("connect-credentials", "The brokers accept the user and its credentials."),
    Rule("connect-token", "The client can fetch an OAuth token."),
    Rule("connect-timeout", "Brokers answer within ten seconds."),
    Rule("fleet-time-limit", "A cluster of a fleet is read within the time limit of the job."),
    Rule("connect-lost", "Brokers stay reachable during a run."),
    Rule(
        "cluster-id", "The cluster has the id in clusters.yaml, or the address if it reports no id."
    ),
    Rule("cluster-rights", "The account has the rights that a run needs."),
    Rule("cluster-answer", "A cluster answers requests without an error."),
    Rule("reassignments-unseen", "It is known which replicas are being reassigned."),
    Rule("sizes-unseen", "The sizes of partitions can be read if a plan or a snapshot needs them."),
    Rule("rates-measured", "A plan that weighs by rates says over what time they were measured."),
    Rule("groups-unseen", "Every consumer group is visible; the report says why one may not be."),
    Rule(
        "broker-silent", "Every broker that is alive answers; the report names one that does not."
    ),
    Rule(
        "request-unoffered",
        "The brokers offer the requests that a change needs; the report names one that is missing.",
    ),
    Rule("lock-held", "Only one apply at a time changes a cluster."),
    Rule("moves-rate-taken", "A throttle rate that somebody else set is never overwritten."),
    Rule(
        "moves-broker-rate",
        "No broker of a plan of moves has a throttle rate of its own that overrides the plan's.",
    ),
    Rule("lock-lost", "An apply that lost the lock of its cluster sends no more requests."),
    Rule("lock-unavailable", "An apply can take the lock of its cluster, or runs with --no-lock."),
)

# Snapshots: files that replace a cluster (snapshot).
_SNAPSHOTS: tuple[Rule, ...] = (
    Rule("snapshot-file", "A snapshot is a readable UTF-8 file."),
    Rule("snapshot-form", "A snapshot matches its schema."),
    Rule("snapshot-version", "A snapshot of a newer major format is not read."),
    Rule(
        "snapshot-assumed", "A report names the data that it needs and the snapshot does not have."
    ),
)

# Plan files, stale plans and outcomes (plan, apply).
_PLAN: tuple[Rule, ...] = (
    Rule(
        "risk-not-acknowledged",
        "Data loss, and reordering of compacted topics, is acknowledged by name.",
    ),
    Rule("topic-expired", "A topic past the date of expires is reported, with its use."),
    Rule("topic-idle", "A topic that nobody used for the time of idle_after is reported."),
    Rule("acknowledge-unused", "An acknowledgement that no change needs is reported."),
    Rule("guard-loosened", "A plan first shows the guards that its request loosens."),
    Rule("guard-max-changed", "One plan changes at most the allowed share of a cluster's topics."),
    Rule("moves-window", "Moves begin only in the windows of their cluster."),
    Rule("moves-too-large", "A plan of moves copies at most max_bytes."),
    Rule(
        "moves-disk", "Every log directory keeps the share keep_free while a plan moves replicas."
    ),
    Rule("moves-rate-below-writes", "The rate of a plan of moves is high enough for it to end."),
    Rule("plan-form", "A plan file matches its schema."),
    Rule("plan-version", "A plan file of a newer major format is not read."),
    Rule("plan-tampered", "A plan file matches its seal and its fingerprint."),
    Rule("plan-cluster", "A plan is applied only to its own cluster."),
    Rule("plan-commit", "A saved plan is applied only with the specs that it was made from."),
    Rule(
        "plan-scope", "A plan reports the topics that it leaves out, and those removed from files."
    ),
    Rule("topics-left", "A plan reports the live topics that its request removes from the specs."),
    Rule("topics-agreed", "A plan reports topics whose changed specs already match the cluster."),
    Rule(
        "notes-muted", "A plan says how many notes are muted by clusters.yaml, and by which rule."
    ),
    Rule("owner-changed", "A plan first shows the owners that its request changes."),
    Rule(
        "settings-changed",
        "A plan reports changed settings if other requests were planned with the old ones.",
    ),
    Rule("election-unable", "A preferred leader is elected once it is alive and in sync."),
    Rule("plan-unexpected", "A new plan is applied only if it is the approved plan."),
    Rule("plan-outdated", "The default branch still asks for what an approved plan does."),
    Rule("approved-rows", "The rows of an approved plan are used if they are as good as new ones."),
    Rule("audit-topic", "If applies must be recorded, the audit topic is writable."),
    Rule("audit-lost", "An audit record that could not be written is printed instead."),
    Rule("plan-stale", "What a plan is based on has not changed since it was made."),
    Rule(
        "created-otherwise",
        "A run reports a new topic if the brokers created it with other counts or configs.",
    ),
    Rule("placed-otherwise", "A run reports new replicas that are on other brokers than planned."),
)

# Plans that run on a throwaway cluster (rehearse).
_REHEARSAL: tuple[Rule, ...] = (
    Rule("rehearsal-fits", "A throwaway cluster fits into the resources of the machine."),
    Rule(
        "rehearsal-differs",
        "Differences between a throwaway cluster and the real one are reported.",
    ),
)

# Estates generated from existing clusters and files (adopt).
_ADOPTION: tuple[Rule, ...] = (
    Rule("import-left-out", "A topic that no spec can describe is left out and reported."),
    Rule("import-not-managed", "A value that a spec cannot describe is left open and reported."),
    Rule("import-explicit", "An import reports written values that only defaults keep in force."),
    Rule("import-kept", "Content that an import cannot rewrite is kept and reported."),
    Rule("import-deletes", "Requests to delete more topics than a plan may delete are reported."),
    Rule("import-foreign", "An import reports topics that other software creates for itself."),
    Rule(
        "import-not-carried", "Content of other tools' files that no spec can describe is reported."
    ),
    Rule("format-left", "A document that fmt cannot rewrite safely is left as it is and reported."),
    Rule("import-differs", "A plan after an import is empty; what prevents this is reported."),
)

# What a fleet job needs, and what its lake contains (fleet).
_FLEET: tuple[Rule, ...] = (
    Rule("lake-collection-name", "The name of a collection is a valid time in UTC."),
    Rule("lake-collection-ahead", "The name of a collection is not a time in the future."),
    Rule("lake-collection-unknown", "A collection that a job reads is published in the lake."),
    Rule("lake-version", "A lake has the layout of this release."),
    Rule("lake-publication", "Every publication in a lake is complete."),
    Rule("lake-table-missing", "A published collection has all of its tables."),
    Rule("lake-rows", "A table has all published rows of each cluster."),
    Rule("lake-write", "A collection is published with every row that was written."),
    Rule("fleet-disk-full", "The disks of the lake and of Spark have space for a job."),
    Rule("fleet-memory", "Spark has the memory that a job needs."),
    Rule("fleet-file", "Files of the lake are readable and writable."),
    Rule("fleet-spark", "Spark completes a job."),
)

# Requests to a code host, and to a webhook.
_CODE_HOST: tuple[Rule, ...] = (
    Rule("code-host-access", "The token of a workflow may write its comments and issues."),
    Rule("code-host-answer", "The code host answers requests."),
    Rule("webhook-answer", "The webhook accepts notifications."),
    Rule("owner-account", "Every owner in a CODEOWNERS file is an account of the code host."),
    Rule("owner-path", "A line of a CODEOWNERS file matches only the path that it is for."),
    Rule("plan-unapproved", "A merge applies only what its pull request showed."),
    Rule("plan-unreviewed", "A review approves only the plan that the request showed before it."),
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
        "workflows": _CODE_HOST,
    }
)

RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.id: rule for rules in STAGES.values() for rule in rules}
)

MUTABLE = (
    "broker-not-registered",
    "internal-replication",
    "kafka-version-newer",
    "kafka-version-older",
    "not-managed",
    "rates-pause",
    "service-likely",
    "service-mover",
)
"""Rules that a cluster may mute: plain notes on it, which repeat in every plan.

No error, warning or refusal has one of them, and none says that the plan itself is imprecise.
"""
