"""Stage 1: from YAML text to TopicSpecs, or to all errors at once.

Belongs here: reading texts with their lines and columns, their form, names, configs, inheritance
and the rules across fields. Forbidden here: any file, cluster, network, clock or environment
variable. `estate` shows the entire pipeline; start there.
"""

from typing import TYPE_CHECKING

from reconciler.spec.base import Base, list_loosened
from reconciler.spec.catalogue import every_key, parse_version, recognise_line, spell_line
from reconciler.spec.changes import Changes, ClusterThen, recall_clusters
from reconciler.spec.client import (
    SECRET_PROPERTIES,
    MalformedReferenceError,
    SecretKind,
    SecretRef,
    check_ports,
    parse_references,
)
from reconciler.spec.clusters import SANDBOX, ClusterEntry
from reconciler.spec.config_docs import Dimension
from reconciler.spec.configs import LAGS, TIERED, Catalogue, choose_catalogue
from reconciler.spec.documents import CLUSTERS_FILES, WrittenTopic, load_clusters
from reconciler.spec.estate import Estate, parse_estate
from reconciler.spec.forms import AuditForm
from reconciler.spec.names import check_name, find_collisions
from reconciler.spec.resource_form import (
    CLUSTER_LABEL,
    DELETED,
    LISTS,
    SPEC_KEYS,
    UNMANAGED,
    refuse_kind,
)
from reconciler.spec.rules import PolicyEngine
from reconciler.spec.scalars import split_list
from reconciler.spec.syntax import FILE_BYTES, load_text
from reconciler.spec.values import YamlList, YamlMap, YamlText, YamlValue, describe_yaml, quote

if TYPE_CHECKING:
    from reconciler.spec.json_schema import build_clusters_schema, build_topic_schema

__all__ = [
    "CLUSTERS_FILES",
    "CLUSTER_LABEL",
    "DELETED",
    "FILE_BYTES",
    "LAGS",
    "LISTS",
    "SANDBOX",
    "SECRET_PROPERTIES",
    "SPEC_KEYS",
    "TIERED",
    "UNMANAGED",
    "AuditForm",
    "Base",
    "Catalogue",
    "Changes",
    "ClusterEntry",
    "ClusterThen",
    "Dimension",
    "Estate",
    "MalformedReferenceError",
    "PolicyEngine",
    "SecretKind",
    "SecretRef",
    "WrittenTopic",
    "YamlList",
    "YamlMap",
    "YamlText",
    "YamlValue",
    "build_clusters_schema",
    "build_topic_schema",
    "check_name",
    "check_ports",
    "choose_catalogue",
    "describe_yaml",
    "every_key",
    "find_collisions",
    "list_loosened",
    "load_clusters",
    "load_text",
    "parse_estate",
    "parse_references",
    "parse_version",
    "quote",
    "recall_clusters",
    "recognise_line",
    "refuse_kind",
    "spell_line",
    "split_list",
]


def __getattr__(name: str) -> object:
    """Import the schemas on first use: only `reconciler schema` needs this slow import."""
    if name not in ("build_clusters_schema", "build_topic_schema"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reconciler.spec import json_schema

    return getattr(json_schema, name)
