"""``kops brokers``."""

from kops.cli.brokers import change, look
from kops.cli.brokers.shared import group

__all__ = ["change", "group", "look"]
