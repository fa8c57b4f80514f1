"""``kops cluster``."""

from kops.cli.cluster import change, folder, look
from kops.cli.cluster.look import group

__all__ = ["change", "folder", "group", "look"]
