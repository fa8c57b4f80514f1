"""An application's state: computed from its topics, compared with its changelogs, put right."""

from kops.operations.state.rebuild import REBUILD

__all__ = ["REBUILD"]
