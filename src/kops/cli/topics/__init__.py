"""``kops topics``: its verbs are in the modules beside, which take their place in the group when they are imported."""

from kops.cli.topics import change, look, replicas
from kops.cli.topics.shared import group

__all__ = ["change", "group", "look", "replicas"]
