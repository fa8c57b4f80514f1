"""What stores of an application held, and what contradicts that."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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


INEXACT = frozenset(
    (
        *("flushed_sessions", "forgotten_times", "times_by_order", "no_timestamps", "join_answers", "repeated_values"),
        *("other_bytes", "unknown_changes", "cached_join", "grouped_updates", "input_gaps", "lost_records", "untested_version"),
    )
)
"""The remarks that say that timestamps, bytes, or groups that are empty by now, may differ."""


@dataclass(frozen=True)
class Claim:
    """What kops says of the keys of a store.

    :param sure: how many it says are right
    :param proven: how many of them survived
    :param is_whole: those are all that there are
    :param is_exact: in bytes, timestamps and partitions; otherwise in their values
    """

    sure: int = 0
    is_whole: bool = True
    is_exact: bool = True
    proven: int = field(default=0, compare=False)

    @classmethod
    def of(cls, said: Mapping[str, Any], *, file_is_right: bool = True) -> Claim:
        """Return what a plan or ``verify`` claims.

        :param file_is_right: of the state file; what rests on a wrong one, and on no witness, claims nothing
        """
        beyond = any(finding["subject"] and finding["severity"] != "note" for finding in said["findings"])
        whole = not (said["doubtful"] or said["impossible"] or beyond) and (file_is_right or not said["computed"])
        is_exact = not any(finding["severity"] == "note" and finding["check"] in INEXACT for finding in said["findings"])
        return cls(said["proven"] + (said["computed"] if file_is_right else 0), whole, is_exact, said["proven"])


def contradicts(
    claim: Claim, wanted: Held, log: Sequence[Record], form: str, *, grouped: bool = False, survived: Sequence[Record] | None = None
) -> list[str]:
    """Return how what is there now contradicts a claim: sentences, none where it does not.

    :param log: of the changelog, by partition and offset
    :param survived: what it was before kops wrote: keys that are as then are the only ones that can be proven
    :param grouped: of a table: a claim that is not exact leaves open whether a group that is empty by now is there
    """
    try:
        found = compacted_view(log)
    except AssertionError as twice:
        return [str(twice)] if claim.is_whole else []

    def may_be_either(entry: Entry) -> bool:
        return grouped and not claim.is_exact and not any(entry.value)

    def difference(entry: Entry, original: Entry) -> str:
        if claim.is_exact:
            return f"{entry} is not {original}" if entry != original else ""
        same = _meaning(entry.value, form) == _meaning(original.value, form)
        return "" if same else f"{entry.value!r} is not {original.value!r}"

    wrong = {}
    for key, entry in sorted(found.items()):
        original = wanted.view.get(key)
        if (original is None and may_be_either(entry)) or wanted.has_expired(key, entry.partition):
            continue
        different = f"not in the store: {entry}" if original is None else difference(entry, original)
        if different:
            wrong[key] = f"{key!r}: {different}"
    if survived is not None:
        before = latest(survived)
        right = sum(before.get((entry.partition, key)) == entry for key, entry in found.items() if key not in wrong)
        if right < claim.proven:
            return [f"{claim.proven} keys are called proven, and {right} that survived are right: {'; '.join([*wrong.values()][:2])}"]
    if not claim.is_whole:
        right = len(found) - len(wrong)
        return (
            [f"{claim.sure} keys are claimed to be right, and {right} are: {'; '.join([*wrong.values()][:2])}"]
            if right < claim.sure
            else []
        )
    missing = [f"{key!r} is missing" for key in sorted(wanted.needed - set(found)) if not may_be_either(wanted.view[key])]
    return [*missing, *wrong.values()]


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
