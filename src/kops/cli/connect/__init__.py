"""``kops connect``: importing the modules of its verbs registers them."""

from kops.cli.connect import change, describe, files, loggers, offsets, plugins
from kops.cli.connect.shared import group

__all__ = ["change", "describe", "files", "group", "loggers", "offsets", "plugins"]
