"""The format of a snapshot file, declared once: it is written, read and published as a schema.

Only brokers are required: anything else that is missing counts as healthy.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from reconciler.errors import Finding

FORMAT_VERSION = "1.4"
"""Major: a reader refuses an unknown major version. Minor: only added keys, which it may skip.

1.2 added `log_directories`, 1.3 `can_cordon`, 1.4 `online` of log directories.
"""

BrokerId = Annotated[StrictInt, Field(ge=0, le=2**31 - 1)]
NOT_EMPTY = Field(json_schema_extra={"minItems": 1})
"""For the schema only. `check_document` refuses it: pydantic would count only valid items."""

Row = Annotated[tuple[BrokerId, ...], NOT_EMPTY]
Amount = Annotated[StrictInt, Field(ge=0, le=2**63 - 1)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class LogDirectoryEntry(_Document):
    """A log directory of a broker: its size and its free space in bytes, and its replicas.

    One that is not `online` has failed.
    """

    path: Annotated[StrictStr, Field(min_length=1)]
    total_bytes: Amount | None = None
    usable_bytes: Amount | None = None
    replicas: Amount | None = None
    online: StrictBool = True


class BrokerEntry(_Document):
    """A broker: its id, its rack, and whether it can get replicas."""

    id: BrokerId
    rack: Annotated[StrictStr, Field(min_length=1)] | None = None
    alive: StrictBool = True
    cordoned: StrictBool = False
    log_directories: tuple[LogDirectoryEntry, ...] = ()


class TopicEntry(_Document):
    """A topic: row p of `partitions` lists the brokers of partition p, preferred leader first.

    `config` holds overrides only; null is the value of a key that the brokers do not know.
    `reassigning` names the partitions under reassignment, whose rows are their targets.
    `size_bytes` and `rate_bytes_per_s` hold one number per partition: the stored bytes, and the
    rate of producers.
    """

    name: Annotated[StrictStr, Field(min_length=1)]
    topic_id: StrictStr | None = None
    partitions: tuple[Row, ...]
    config: dict[StrictStr, StrictStr | None] = Field(default_factory=dict)
    in_sync: tuple[tuple[BrokerId, ...], ...] = ()
    reassigning: tuple[Annotated[StrictInt, Field(ge=0)], ...] = ()
    internal: StrictBool = False
    size_bytes: tuple[Amount, ...] = ()
    rate_bytes_per_s: tuple[Amount, ...] = ()


class SnapshotDocument(_Document):
    """The state of one Kafka cluster. `config_defaults` holds the effective values without
    overrides.

    `broker_settings` holds flags of the brokers that limit topics, such as
    remote.log.storage.system.enable: "true" if all brokers have it, else "false". `can_cordon`:
    they know cordoned.log.dirs (Kafka 4.3). Brokers that appear only in rows are dead.
    """

    schema_address: StrictStr | None = Field(default=None, alias="$schema")
    format_version: Annotated[StrictStr, Field(pattern=r"^\d{1,9}\.\d{1,9}$")] = FORMAT_VERSION
    cluster_id: StrictStr | None = None
    kafka_version: (
        Annotated[StrictStr, Field(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?$")] | None
    ) = None
    brokers: Annotated[tuple[BrokerEntry, ...], NOT_EMPTY]
    config_defaults: dict[StrictStr, StrictStr] = Field(default_factory=dict)
    broker_settings: dict[StrictStr, Literal["true", "false"]] = Field(default_factory=dict)
    can_cordon: StrictBool = False
    topics: tuple[TopicEntry, ...] = ()
    notes: tuple[Finding, ...] = ()
