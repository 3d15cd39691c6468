"""Requests of the Kafka protocol that a service may lack, by the names that messages show."""

from __future__ import annotations

from enum import StrEnum


class KafkaRequest(StrEnum):
    """A request that is named before anything is planned on it, if the brokers do not offer it."""

    FIND_COORDINATOR = "FindCoordinator"
    JOIN_GROUP = "JoinGroup"
    SYNC_GROUP = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    LEAVE_GROUP = "LeaveGroup"
    DESCRIBE_GROUPS = "DescribeGroups"
    RIGHTS = "Metadata v8"  # without the rights of an account before (KIP-430)
    TOPIC_IDS = "Metadata v10"  # without ids of topics before (KIP-516)
    CREATE_TOPICS = "CreateTopics"
    DELETE_TOPICS = "DeleteTopics v6"  # by name only before (KIP-516)
    CREATE_PARTITIONS = "CreatePartitions"
    ALTER_CONFIGS = "IncrementalAlterConfigs"
    ELECT_LEADERS = "ElectLeaders"
    ALTER_REASSIGNMENTS = "AlterPartitionReassignments"
    LIST_REASSIGNMENTS = "ListPartitionReassignments"
    DESCRIBE_LOG_DIRS = "DescribeLogDirs"
    ALTER_LOG_DIRS = "AlterReplicaLogDirs"
    INIT_PRODUCER_ID = "InitProducerId"


LOCK = (
    KafkaRequest.FIND_COORDINATOR,
    KafkaRequest.JOIN_GROUP,
    KafkaRequest.SYNC_GROUP,
    KafkaRequest.HEARTBEAT,
    KafkaRequest.LEAVE_GROUP,
    KafkaRequest.DESCRIBE_GROUPS,
)
"""What the lock of an apply asks of brokers."""

MOVING = (KafkaRequest.LIST_REASSIGNMENTS, KafkaRequest.ALTER_REASSIGNMENTS)
"""What a run asks of brokers that moves replicas, however few."""
