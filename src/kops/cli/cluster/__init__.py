"""``kops cluster``."""

from kops.cli.cluster import change, look
from kops.cli.cluster.look import group

__all__ = ["change", "group", "look"]
