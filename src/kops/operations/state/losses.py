"""What the logs of changelogs say about records that were lost. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kops.operations.state.evidence import partitions_text


def lossy(starts: Mapping[int, int], cleanup_policy: str) -> list[int]:
    """Return the partitions of a changelog that have lost records: they begin above offset 0, and no setting has records deleted.

    Compaction leaves a log's start where it is. A rebuild may have brought back since what was lost.

    :param starts: the first offset of each partition
    """
    return [] if "delete" in cleanup_policy.split(",") else [number for number, start in sorted(starts.items()) if start > 0]


def losses_text(topic: str, starts: Mapping[int, int], cleanup_policy: str) -> str:
    """Say which partitions of a changelog have lost records; empty when none has."""
    found = lossy(starts, cleanup_policy)
    if not found:
        return ""
    has = "has" if len(found) == 1 else "have"
    return f"{partitions_text(found)} of {topic} {has} lost records: keys that nothing has written again since are missing there"
