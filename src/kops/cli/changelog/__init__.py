"""``kops changelog``: its verbs are in the other modules, which add them to the group when they are imported."""

from kops.cli.changelog import find, look
from kops.cli.changelog.shared import group

__all__ = ["find", "group", "look"]
