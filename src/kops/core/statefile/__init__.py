"""State files: how an application's stores come from its topics, in the application's own terms."""

from kops.core.statefile.models import Aggregation, StateFile, Store, Windows
from kops.core.statefile.parse import parse_state_file
from kops.core.statefile.sources import Form, Source

__all__ = ["Aggregation", "Form", "Source", "StateFile", "Store", "Windows", "parse_state_file"]
