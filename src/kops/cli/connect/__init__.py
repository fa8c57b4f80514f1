"""``kops connect``: its verbs are in the modules beside, which take their place in the group when they are imported."""

from kops.cli.connect import change, files, loggers, look, offsets, plugins
from kops.cli.connect.shared import group

__all__ = ["change", "files", "group", "loggers", "look", "offsets", "plugins"]
