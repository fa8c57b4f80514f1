"""Values sent to a grouped table (``KTable.groupBy``): what to add and what to subtract (``ChangedSerializer``).

The last byte names the content: 0 the old value, 1 the new one, 2 both, which Kafka Streams sends since 3.5 (KIP-904) when the key stays
the same. 3, 4 and 5 are the same, with a flag in front of that byte: whether the change is the latest of its key. Kafka Streams reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.formats.streams.reading import Reader

_OLD, _NEW, _BOTH = range(3)
_WITH_FLAG = 3


@dataclass(frozen=True, slots=True)
class TableChange:
    """A change of a table's row.

    :param new: added to the group; None when the row left it
    :param old: subtracted from it; None when the row is new to it
    :param is_latest: None where the format does not say it, which Kafka Streams treats as true
    """

    new: bytes | None
    old: bytes | None
    is_latest: bool | None = None


def decode(data: bytes) -> TableChange:
    """Decode a change.

    :raises UndecodableRecord: when the last byte is not a known form, or the values do not have that form
    """
    if not data:
        raise UndecodableRecord("a change of a table is not empty")
    form, values, is_latest = data[-1], data[:-1], None
    if form >= 2 * _WITH_FLAG:
        raise UndecodableRecord(f"form {form} of a table's change is not known")
    if form >= _WITH_FLAG:
        form -= _WITH_FLAG
        if values[-1:] not in (b"\x00", b"\x01"):
            raise UndecodableRecord(f"whether a change is the latest is 0 or 1, not {values[-1:]!r}")
        is_latest, values = values[-1] == 1, values[:-1]
    if form == _OLD:
        return TableChange(None, values, is_latest)
    if form == _NEW:
        return TableChange(values, None, is_latest)
    reader = Reader(values)
    new = reader.raw(reader.zigzag())
    return TableChange(new, reader.rest(), is_latest)
