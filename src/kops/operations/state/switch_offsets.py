"""The metadata of offsets of partitions that come in place of others."""

from __future__ import annotations

from collections.abc import Iterable

from kops.core.errors import UndecodableRecord
from kops.core.models import Committed
from kops.formats.streams import offset_metadata
from kops.formats.streams.offset_metadata import UNKNOWN_TIME, OffsetMetadata


def emissions_of(committed: Iterable[Committed]) -> str:
    """Return metadata for partitions that take over from others: how far stores that emit on window close have got.

    Each task restores the greatest time of its partitions. Of several that merge the least is taken: a window that closed between is
    sent again rather than never. A partition that never emitted makes it unknown.

    :param committed: of the partitions before
    """
    found = [_emissions(one) for one in committed]
    names = set.intersection(*(set(each) for each in found)) if found else set()
    if not names:
        return ""
    return offset_metadata.encode(OffsetMetadata(UNKNOWN_TIME, {name: min(each[name] for each in found) for name in sorted(names)}))


def _emissions(committed: Committed) -> dict[str, int]:
    try:
        return dict(offset_metadata.decode(committed.metadata or "").last_emissions_ms)
    except UndecodableRecord:
        return {}
