"""Names of what kops itself keeps on a cluster, such as how far replays came: nobody's trouble and nobody's lag. Pure."""

from __future__ import annotations

from collections.abc import Collection

_PREFIX = "kops-"
_GROUPS = ("kops-replay-", "kops-redrive-", "kops-reader-", "kops-progress")


def is_own_group(name: str) -> bool:
    """Tell whether a group is kops' own."""
    return name.startswith(_GROUPS)


def is_meant(group: str, patterns: Collection[str]) -> bool:
    """Tell whether patterns may match a group: kops' own only where one of them names it, or begins as its names do."""
    return not is_own_group(group) or group in patterns or any(pattern.startswith(_PREFIX) for pattern in patterns)
