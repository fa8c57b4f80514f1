"""``kops connect``: its verbs are in the modules beside, which take their place in the group when they are imported."""

from kops.cli.connect import look, plugins
from kops.cli.connect.shared import group

__all__ = ["group", "look", "plugins"]
