"""The type of store that a changelog belongs to: as given, or as its name, its settings and some of its records suggest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kops.core.errors import UndecodableRecord, UsageProblem
from kops.core.models import READ_UNCOMMITTED, TopicPartition
from kops.core.records.models import OffsetRange, Record
from kops.core.statefile import Store
from kops.formats.streams import detection, session_keys, suppression, window_keys
from kops.formats.streams import store_types as types
from kops.formats.streams.detection import NAMED, Guess
from kops.operations.changelog.layouts import KEY_VALUE, LAYOUTS, SUPPRESSED_SESSIONS, SUPPRESSED_WINDOWS, Layout
from kops.operations.changelog.target import FrozenChangelog
from kops.operations.engine.state_files import read_state_file
from kops.operations.services import Services

EACH = 100
"""Offsets at the end of a partition that are sampled."""
PARTITIONS = 4
"""How many partitions are sampled, the longest ones."""
MANY = 50
"""From this number of topics on, one partition each is enough: a list must not read a hundred thousand records."""
_LONGEST_WINDOW = 400 * 86_400_000


@dataclass(frozen=True)
class Detection:
    """How a changelog is read.

    :param guess: the type, and why
    :param window_size: in milliseconds, where the values show it
    :param sample: the records that were sampled
    """

    layout: Layout
    guess: Guess
    window_size: int | None = None
    sample: tuple[Record, ...] = field(default=(), repr=False)

    @property
    def sentence(self) -> str:
        """A sentence about it; empty when the type was given and nothing contradicts it."""
        if self.guess.confidence == NAMED:
            return f"read as {self.layout.name}, as named, although {'; '.join(self.guess.reasons)}" if self.guess.reasons else ""
        others = [each for each in self.guess.alternatives if each in LAYOUTS]
        other = f" or {', '.join(others)}" if others and self.guess.confidence != detection.HIGH else ""
        reasons = "; ".join(self.guess.reasons) or "nothing speaks for another type"
        name = self.guess.type if self.layout is KEY_VALUE else self.layout.name
        return f"read as {name}, a guess of {self.guess.confidence} confidence{other}: {reasons} (--type names another)"


def detect(services: Services, target: FrozenChangelog, named: str | None) -> Detection:
    return detect_by(target, samples(services, {target.topic: target}).get(target.topic, []), named)


def detect_by(target: FrozenChangelog, records: Sequence[Record], named: str | None) -> Detection:
    settings = {name: setting.value or "" for name, setting in target.settings.items()}
    type_name = types.SUPPRESS if named in (SUPPRESSED_WINDOWS, SUPPRESSED_SESSIONS) else named
    guess = detection.detect(target.topic, settings, records, named=type_name)
    if named is not None:
        layout = LAYOUTS[named]
    elif guess.type == types.SUPPRESS:
        layout = LAYOUTS[_suppressed(records)]
    else:
        layout = LAYOUTS.get(guess.type, KEY_VALUE)
    size = _size_of_suppressed(records) if layout.name == SUPPRESSED_WINDOWS else None
    return Detection(layout, guess, size, tuple(records))


def samples(services: Services, targets: dict[str, FrozenChangelog]) -> dict[str, list[Record]]:
    """Return the newest records of some topics, all read at once."""
    ranges: dict[TopicPartition, OffsetRange] = {}
    partitions = PARTITIONS if len(targets) < MANY else 1
    for target in targets.values():
        logs = target.ranges_of()
        for partition in sorted(logs, key=lambda partition: logs[partition].start - logs[partition].end)[:partitions]:
            ranges[partition] = OffsetRange(max(logs[partition].start, logs[partition].end - EACH), logs[partition].end)
    found: dict[str, list[Record]] = {}
    # Uncommitted records show the type too, and can be read at once; an open transaction would hide all that follows it.
    for batch in services.kafka.records.read(ranges, isolation=READ_UNCOMMITTED):
        for record in batch:
            found.setdefault(record.topic, []).append(record)
    return found


def _suppressed(records: Sequence[Record]) -> str:
    """Return the type by the keys of a suppressed table: the record that a value came from is in its window or session."""
    times = [(record.key, time) for record in records if record.key is not None and (time := _time_of(record)) is not None]
    if times and all(_in_session(key, time) for key, time in times):
        return SUPPRESSED_SESSIONS
    if times and all(_in_window(key, time) for key, time in times):
        return SUPPRESSED_WINDOWS
    return types.SUPPRESS


def _time_of(record: Record) -> int | None:
    if record.value is None:
        return None
    try:
        context = suppression.decode(record.value, record.headers).context
    except UndecodableRecord:
        return None
    return context.timestamp_ms if context else record.timestamp


def _in_session(key: bytes, time: int) -> bool:
    try:
        session = session_keys.decode(key)
    except UndecodableRecord:
        return False
    return session.start_ms <= time <= session.end_ms


def _in_window(key: bytes, time: int) -> bool:
    try:
        start = window_keys.decode_without_sequence(key).start_ms
    except UndecodableRecord:
        return False
    return start <= time <= start + _LONGEST_WINDOW


def _size_of_suppressed(records: Sequence[Record]) -> int | None:
    """Return the size of the windows, if each is held back until its end."""
    sizes = set()
    for record in records:
        if record.key is not None and record.value is not None:
            try:
                time = suppression.decode(record.value, record.headers).buffer_time_ms
                sizes.add(time - window_keys.decode_without_sequence(record.key).start_ms)
            except UndecodableRecord:
                continue
    return sizes.pop() if len(sizes) == 1 else None


@dataclass(frozen=True)
class StoreSpec:
    """What a state file says about a store.

    :param window_size: in milliseconds; None for stores without windows
    """

    type_name: str
    key_name: str
    value_name: str
    window_size: int | None


def spec_in(path: str, topic: str) -> StoreSpec:
    """Return what a state file says about a changelog.

    :raises ConfigError: when it cannot be read
    :raises UsageProblem: when none of its stores has this changelog
    """
    stores = read_state_file(path).stores
    for store in stores:
        buffer = store.window is not None and store.window.buffer == topic
        if store.changelog == topic or buffer:
            window = store.window
            size = None if window is None or window.kind == types.SESSION else window.size_ms
            return StoreSpec(_type(store, buffer=buffer), store.key_form.name, store.aggregate.form.name, size)
    changelogs = ", ".join(store.changelog for store in stores)
    raise UsageProblem(f"{path} has no store whose changelog is {topic}", hint=f"changelogs of its stores: {changelogs}")


def _type(store: Store, *, buffer: bool) -> str:
    if store.window is not None:
        sessions = store.window.kind == types.SESSION
        if buffer:
            return SUPPRESSED_SESSIONS if sessions else SUPPRESSED_WINDOWS
        return types.SESSION if sessions else types.WINDOW
    return types.VERSIONED if store.type == types.VERSIONED else types.KEY_VALUE
