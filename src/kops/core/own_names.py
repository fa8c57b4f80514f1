"""Groups that kops itself keeps on a cluster, such as the progress of replays: not to be reported as lagging. Pure."""

from __future__ import annotations

from collections.abc import Collection

_PREFIX = "kops-"
_GROUPS = ("kops-replay-", "kops-redrive-", "kops-reader-", "kops-progress")


def is_own_group(name: str) -> bool:
    return name.startswith(_GROUPS)


def may_match(group: str, patterns: Collection[str]) -> bool:
    """Whether patterns may match a group. kops' own groups match only their exact name or patterns that start with ``kops-``."""
    return not is_own_group(group) or group in patterns or any(pattern.startswith(_PREFIX) for pattern in patterns)
