"""Stage 1: YAML text becomes TopicSpecs, or every reason why it cannot, all at once.

Belongs here: reading files with their lines and columns, their form, names, configs, inheritance
and the rules across fields. Forbidden here: any cluster, network, clock or environment variable.
"""

from reconciler.spec.clusters import SANDBOX, ClusterEntry
from reconciler.spec.estate import Estate, load_estate
from reconciler.spec.governor import Governor

__all__ = ["SANDBOX", "ClusterEntry", "Estate", "Governor", "load_estate"]
