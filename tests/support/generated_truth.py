"""What stores of an application held, and what contradicts that."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from support.programs import Record, Window
from support.streams import Entry, compacted_view


@dataclass(frozen=True)
class Held:
    """What a store held before the damage.

    :param view: of its changelog
    :param needed: the keys that the application still finds in it; of a window store not those that have expired
    :param has_expired: whether a key in a partition is one that the application does not find, whatever the changelog has
    """

    view: Mapping[bytes, Entry]
    needed: frozenset[bytes]
    has_expired: Callable[[bytes, int | None], bool] = lambda _key, _partition: False


def held(window: Window | None, log: Sequence[Record]) -> Held:
    """Return what a store holds, by the log of its changelog.

    A window has expired once it starts (a session: ends) the retention or more before the newest in the task
    (``AbstractRocksDBSegmentedBytesStore``: ``observedStreamTime - retentionPeriod + 1``).
    """
    view = compacted_view(log)
    if window is None:
        return Held(view, frozenset(view))
    assert window.retention

    def moment(key: bytes) -> int:
        found: int = struct.unpack_from(">q", key, len(key) - (16 if window.type == "session" else 12))[0]
        return found

    newest: dict[int | None, int] = {}
    for record in log:
        newest[record.partition] = max(newest.get(record.partition, 0), moment(record.key or b""))

    def has_expired(key: bytes, partition: int | None) -> bool:
        return moment(key) <= newest.get(partition, 0) - window.retention

    return Held(view, frozenset(key for key, entry in view.items() if not has_expired(key, entry.partition)), has_expired)


def contradicts(grade: str, wanted: Held, log: Sequence[Record], form: str, *, grouped: bool = False) -> list[str]:
    """Return how what is there now contradicts a class: sentences, none where it does not.

    :param grade: A: bytes, timestamps and partitions; B: values; another one promises nothing
    :param log: of the changelog, by partition and offset
    :param grouped: of a table: B leaves open whether a group that is empty by now is there
    """
    if grade not in ("A", "B"):
        return []
    try:
        found = compacted_view(log)
    except AssertionError as twice:
        return [str(twice)]

    def may_be_either(entry: Entry) -> bool:
        return grouped and grade == "B" and not any(entry.value)

    said = [f"{key!r} is missing" for key in sorted(wanted.needed - set(found)) if not may_be_either(wanted.view[key])]
    for key, entry in sorted(found.items()):
        original = wanted.view.get(key)
        if (original is None and may_be_either(entry)) or wanted.has_expired(key, entry.partition):
            continue
        if original is None:
            said.append(f"{key!r} is not in the store: {entry}")
        elif grade == "A" and entry != original:
            said.append(f"{key!r}: {entry} is not {original}")
        elif grade == "B" and _meaning(entry.value, form) != _meaning(original.value, form):
            said.append(f"{key!r}: {entry.value!r} is not {original.value!r}")
    return said


def latest(log: Iterable[Record]) -> dict[tuple[int | None, bytes], Entry]:
    """Return the compacted view of a changelog by partition and key: a wrong one may have a key twice."""
    found: dict[tuple[int | None, bytes], Entry] = {}
    for record in log:
        place = (record.partition, record.key or b"")
        found.pop(place, None)
        if record.value is not None:
            found[place] = Entry(record.value, record.timestamp, record.headers, record.partition)
    return found


def _meaning(value: bytes, form: str) -> object:
    return json.loads(value) if form == "json" else value
