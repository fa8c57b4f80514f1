"""Where a time leads in each partition: Kafka's answer, and what is in the log there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kops.core.errors import KopsError
from kops.core.findings import names_text
from kops.core.models import READ_UNCOMMITTED, Bounds, TopicPartition
from kops.core.offsets.arithmetic import Landing, Strategy, ToTime
from kops.core.records.models import OffsetRange
from kops.core.times import CLOCKS_DIFFER_MS, time_text, to_milliseconds
from kops.operations.clock import clock_notes
from kops.operations.services import Services

EACH = 500
"""Records looked at from the found offset on, and before the log end: one fetch."""
MOST_PARTITIONS = 500
"""In more than these nothing is checked: it would take seconds."""
_SHOWN = 3


def landings(
    services: Services, times: Mapping[TopicPartition, int], bounds: Mapping[TopicPartition, Bounds], *, look: bool = True
) -> dict[TopicPartition, Landing | None]:
    """Return where each partition has the first offset at or after its time; None if none is as late.

    :param bounds: of partitions that exist; others are left out
    :param look: read some records there, where the partitions are not too many
    """
    found: dict[TopicPartition, Landing | None] = {}
    for milliseconds in set(times.values()):
        some = [place for place, wanted in times.items() if wanted == milliseconds and place in bounds]
        answers = services.kafka.offsets.found_at(some, milliseconds)
        found |= {place: None if at is None else Landing(at.offset, at.timestamp) for place, at in answers.items()}
    there = {place: landing for place, landing in found.items() if landing is not None}
    if look and 0 < len(there) <= MOST_PARTITIONS:
        found |= _looked_at(services, there, times, bounds)
    return found


def by_strategy(
    services: Services, strategies: Mapping[TopicPartition, Strategy], bounds: Mapping[TopicPartition, Bounds]
) -> tuple[dict[TopicPartition, Landing | None], list[str]]:
    """Return where the strategies that are times lead, and warnings about that."""
    times = {place: strategy for place, strategy in strategies.items() if isinstance(strategy, ToTime) and place in bounds}
    found = landings(services, {place: time.milliseconds for place, time in times.items()}, bounds)
    return found, time_warnings(services, ((times[place], place, found[place]) for place in times if not bounds[place].empty))


def _looked_at(
    services: Services,
    there: Mapping[TopicPartition, Landing],
    times: Mapping[TopicPartition, int],
    bounds: Mapping[TopicPartition, Bounds],
) -> dict[TopicPartition, Landing]:
    """Return landings with how the records from there on, and the last ones, are dated; as they were where these cannot be read."""
    ends = {place: max(landing.offset, bounds[place].log_end_offset) for place, landing in there.items()}
    heads = {place: OffsetRange(one.offset, min(one.offset + EACH, ends[place])) for place, one in there.items()}
    tails = {place: OffsetRange(max(heads[place].end, end - EACH), end) for place, end in ends.items()}
    dated: dict[TopicPartition, list[tuple[int, int | None]]] = {place: [] for place in there}
    try:
        for ranges in (heads, tails):
            reader = services.kafka.records.parts(ranges, ("topic", "partition", "offset", "timestamp"), isolation=READ_UNCOMMITTED)
            for batch in reader:
                for topic, partition, offset, timestamp in batch:
                    dated[TopicPartition(topic, partition)].append((offset, timestamp))
    except KopsError:  # without the right to read, or while a leader is down, it is not known what is there
        return dict(there)
    found = {}
    for place, records in dated.items():
        early = [(offset, timestamp) for offset, timestamp in records if timestamp is not None and timestamp < times[place]]
        first = next((one for one in records if one[0] < heads[place].end), None)
        earlier = (len(early), *early[0]) if early else None
        found[place] = replace(there[place], looked=len(records), until=heads[place].end, record=first, earlier=earlier)
    return found


def time_warnings(services: Services, found: Iterable[tuple[ToTime, TopicPartition, Landing | None]]) -> list[str]:
    """Return warnings about positions by time: wrong dates, earlier records after them, another clock.

    :param found: each time, with partitions that have records, and where it leads there
    """
    now = to_milliseconds(services.now())
    ahead, early, unseen, late = list[str](), list[str](), list[str](), list[str]()
    relative = False
    for time, place, landing in found:
        relative = relative or time.relative
        if landing is None:
            late += [str(place)] if time.relative else []
            continue
        dated = landing.timestamp if landing.record is None else landing.record[1]
        if dated is not None and dated > now + CLOCKS_DIFFER_MS:
            ahead.append(f"{place}, {time_text(dated)}")
        if landing.looked is None:
            unseen.append(str(place))
        if landing.earlier is not None:
            count, offset, timestamp = landing.earlier
            early.append(
                f"{place}, where {count:,} of {landing.looked:,} records looked at from offset {landing.offset} on are earlier than"
                f" {time_text(time.milliseconds)}, such as offset {offset} of {time_text(timestamp)}"
            )
    return [*_sentences(ahead, early, unseen, late), *(clock_notes(services) if relative else ())]


def _sentences(ahead: list[str], early: list[str], unseen: list[str], late: list[str]) -> Iterator[str]:
    if late:
        yield f"all records are earlier than the time, which is by this machine's clock: log end of {names_text(late, _SHOWN)}"
    if ahead:
        yield f"the time leads to records that are dated after now: {names_text(ahead, _SHOWN)}"
    if early:
        yield f"timestamps are out of order: {names_text(early, _SHOWN)}"
    if unseen:
        yield f"order and dates of the records were not looked at: {names_text(unseen, _SHOWN)}"
