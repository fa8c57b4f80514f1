"""Where an application began to read its topics: records before it never counted, so none of them is missing either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kops.core.errors import ConfigError, KopsError, Refused
from kops.core.findings import Finding
from kops.core.models import Bounds, TopicPartition
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import FAUST
from kops.core.statefile.sources import LATEST, TIME, Source, Start
from kops.core.streams.verdict import doubt, obstacle
from kops.core.times import time_text
from kops.operations.groups.log import read_group_log
from kops.operations.services import Services

MOST_COMMITS = 100_000
"""How many records of ``__consumer_offsets`` are read, the newest ones: this takes less than a second."""


@dataclass(frozen=True)
class InputStarts:
    """Where a store's input began.

    :param offsets: the first offset that the application read, for partitions where the state file says it
    :param findings: why it is uncertain where that was
    """

    offsets: Mapping[TopicPartition, int]
    findings: tuple[Finding, ...] = ()

    def of(self, topic: str) -> dict[int, int]:
        return {place.partition: offset for place, offset in self.offsets.items() if place.topic == topic}


def oldest_commits(services: Services, state_file: StateFile) -> dict[TopicPartition, int]:
    """Return the oldest offsets that an application committed, as far as ``__consumer_offsets`` has them.

    :return: empty where the stores need none, or not all of the log can be read
    """
    if state_file.library == FAUST or not any(_from_latest(source) for store in state_file.stores for source in store.inputs):
        return {}
    try:
        log = read_group_log(services, [state_file.application], most=MOST_COMMITS)
    except KopsError:
        return {}
    if log.left_out:
        return {}
    firsts = {place: events[0].committed for place, events in log.histories[state_file.application].commits.items() if events}
    return {place: committed.offset for place, committed in firsts.items() if committed is not None}


def _from_latest(source: Source) -> bool:
    return source.start is not None and source.start.kind == LATEST


def find_starts(
    services: Services,
    state_file: StateFile,
    store: Store,
    bounds: Mapping[TopicPartition, Bounds],
    oldest: Mapping[TopicPartition, int] | None = None,
) -> InputStarts:
    """Return where a store's input began.

    :param bounds: of the partitions of all its topics
    :param oldest: as :func:`oldest_commits` finds them
    :raises ConfigError: when the state file names other partitions than a topic has
    :raises Refused: when a topic ends before it
    """
    offsets: dict[TopicPartition, int] = {}
    findings: list[Finding] = []
    for source in store.inputs:
        here = {place: bound for place, bound in bounds.items() if place.topic == source.topic}
        if source.start is None:
            continue
        if source.start.kind == LATEST:
            found, unsure = _at_the_end_of_then(source.topic, here, oldest or {})
            offsets |= found
            findings += unsure
        elif source.start.kind == TIME:
            found, unsure = _at_time(services, source.topic, source.start.value, here)
            offsets |= found
            findings += unsure
        else:
            offsets |= _at_offsets(state_file, store, source.topic, source.start, here)
    return InputStarts(offsets, tuple(findings))


def _at_the_end_of_then(
    topic: str, bounds: Mapping[TopicPartition, Bounds], oldest: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, int], list[Finding]]:
    """Return offset 0 for all partitions if the oldest commit of each is that one, or it never had a record; otherwise nothing is known."""
    unknown = [place for place, bound in sorted(bounds.items()) if bound.log_end_offset > 0 and oldest.get(place) != 0]
    if not unknown:
        return dict.fromkeys(bounds, 0), []
    reason = f"where it began is not known: the application began to read {topic} at what was its end then (start: latest)"
    first = oldest.get(unknown[0])
    seen = f", and no commit of {unknown[0]} is known" if first is None else f", and the oldest known commit of {unknown[0]} is at {first}"
    sure = "the offsets or the time of then, as `start` in a state file, make it sure"
    return {}, [obstacle("unknown_start", f"{reason}{seen}; {sure}")]


def starts_after_snapshot(bounds: Iterable[TopicPartition], offsets: Mapping[TopicPartition, int]) -> InputStarts:
    """Return where a store's input continues after a snapshot, which has what came before.

    :param offsets: up to where the snapshot has it; from a partition that is not included, nothing was read
    """
    return InputStarts({place: offsets.get(place, 0) for place in bounds})


def _at_offsets(
    state_file: StateFile, store: Store, topic: str, start: Start, bounds: Mapping[TopicPartition, Bounds]
) -> dict[TopicPartition, int]:
    named = dict(start.offsets) or {place.partition: start.value for place in bounds}
    there = {place.partition for place in bounds}
    if set(named) != there:
        missing, unknown = sorted(there - set(named)), sorted(set(named) - there)
        what = f"has no offset of partition {missing[0]}" if missing else f"names partition {unknown[0]}, which the topic does not have"
        raise ConfigError(
            f"{state_file.path}: stores.{store.name}.from.start {what}: {topic} has {len(there)} partitions",
            hint="name each of them; 0 where it was read from the beginning",
            file=state_file.path,
            field=f"stores.{store.name}.from.start",
        )
    for place, bound in sorted(bounds.items()):
        if named[place.partition] > bound.log_end_offset:
            raise Refused(
                f"{place} ends at {bound.log_end_offset}, but by the file the application began at {named[place.partition]}: the topic"
                " was recreated, or `start` is wrong",
                hint=f"see `start` of {topic} in {state_file.path}",
            )
    return {TopicPartition(topic, number): offset for number, offset in named.items()}


def _at_time(
    services: Services, topic: str, milliseconds: int, bounds: Mapping[TopicPartition, Bounds]
) -> tuple[dict[TopicPartition, int], list[Finding]]:
    """Return the first offset from a time on, the one that a reset to that time finds.

    Where the oldest records are gone, one of them may have been the first of that time: if the offset found is the log
    start, that has to be assumed; if it is later in the log, it is so only if times did not grow with offsets.
    """
    found, places = {}, []
    for place, offset in services.kafka.offsets.at_time(bounds, milliseconds).items():
        bound = bounds[place]
        at = bound.log_end_offset if offset is None else offset
        if bound.log_start_offset == 0 or at > bound.log_start_offset:
            found[place] = at
        if 0 < bound.log_start_offset < at:
            places.append(str(place))
    if not places:
        return found, []
    reason = f"{', '.join(sorted(places))}: a record that is gone by now may have been the first from {time_text(milliseconds)} on"
    return found, [doubt("unknown_start", f"{reason}; the offsets themselves, as `start` of {topic}, make it sure")]
