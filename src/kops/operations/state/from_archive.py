"""Input from archives first, then from the topics: no gap, no overlap, and how much comes from where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kops.core.errors import Refused, UsageProblem
from kops.core.findings import names_text
from kops.core.models import TopicPartition
from kops.core.times import Position
from kops.operations.archive.read import paths_of, rows_compared
from kops.operations.engine.spark import Engine
from kops.operations.state.archived_input import ArchivedInput
from kops.operations.state.input_offsets import ArchiveShare, InputOffsets, bytes_of

if TYPE_CHECKING:
    from kops.spark.types import DataFrame

_NAMED = 5


def with_shares(
    engine: Engine, archived: Mapping[str, ArchivedInput], cut: InputOffsets, at: Position, begins: Mapping[TopicPartition, int]
) -> InputOffsets:
    """Let the engine read archives up to their ends, then the topics; return the cut with the shares of both.

    :param begins: the first offset that counts, for partitions where that is known
    :raises UsageProblem: when something is missing in between
    :raises Refused: when an archive does not hold what its manifest says, or the application would continue where only it has records
    """
    _refuse_gaps(archived, cut, begins)
    shares, notes = [], []
    for topic, one in archived.items():
        rows = rows_compared(engine, one.place, one.archive)
        if rows is not None:
            _refuse_time(topic, one, rows, at)
        from kops.spark.reading.archive import ArchivedTopic

        ends = {number: end for number, (_, end) in one.spans.items()}
        engine.archives[topic] = ArchivedTopic(topic, paths_of(one.place, one.archive), ends)
        shares.append(_share(engine, topic, one, rows, cut))
        notes += [*one.notes, *_left_behind(topic, one, cut)]
    return replace(cut, notes=(*cut.notes, *notes), archived=tuple(shares))


def _refuse_gaps(archived: Mapping[str, ArchivedInput], cut: InputOffsets, begins: Mapping[TopicPartition, int]) -> None:
    found = [
        (TopicPartition(topic, number), start, end)
        for topic, one in archived.items()
        for number in one.spans
        for start, end in _gaps(one, number)
        if start < cut.offsets.get(TopicPartition(topic, number), 0) and end > begins.get(TopicPartition(topic, number), 0)
    ]
    if not found:
        return
    places = names_text((f"{place} from offset {start} to {end}" for place, start, end in found), _NAMED)
    raise UsageProblem(
        f"neither the archive nor the topic has {places}",
        hint="name an archive that has them; without --from-archive it is computed from what the topic has",
        gaps=[{"topic": place.topic, "partition": place.partition, "start": start, "end": end} for place, start, end in found],
    )


def _gaps(one: ArchivedInput, number: int) -> Iterator[tuple[int, int]]:
    """Yield what is missing in a partition: between runs, and from the end of the archive to the start of the topic's log."""
    begins, end = one.logs[number].log_start_offset, one.spans[number][1]
    yield from one.archive.gaps(number)
    if end < begins:
        yield end, begins


def _refuse_time(topic: str, one: ArchivedInput, rows: DataFrame, at: Position) -> None:
    """Refuse a time whose first record is only in the archive: the application could not resume there."""
    if at.kind != "time":
        return
    from kops.spark.driver.failures import explained
    from kops.spark.reading.archive import from_time_on

    with explained(f"read the archive {one.place.path}"):
        ends = {number: min(end, one.logs[number].log_start_offset) for number, (_, end) in one.spans.items()}
        found = from_time_on(rows, ends, at.value)
    if found:
        number, offset = min(found.items())
        raise Refused(
            f"{topic}:{number} has offset {offset} of that time in the archive only: the application could not resume there",
            hint="name a later time, or leave --at out",
        )


def _left_behind(topic: str, one: ArchivedInput, cut: InputOffsets) -> list[str]:
    return [
        f"{place}: the committed offset {cut.offsets[place]} lies before the log start {log.log_start_offset}: the application will not see"
        " what is between, which only the archive has"
        for number in one.spans
        if cut.offsets.get(place := TopicPartition(topic, number), 0) < (log := one.logs[number]).log_start_offset
        and place in cut.committed
        and not cut.is_new
    ]


def _share(engine: Engine, topic: str, one: ArchivedInput, rows: DataFrame | None, cut: InputOffsets) -> ArchiveShare:
    from kops.spark.driver.failures import explained
    from kops.spark.reading.archive import file_bytes, records_before
    from kops.spark.reading.ranges import TopicRange

    reached = {number: cut.offsets.get(TopicPartition(topic, number), 0) for number in one.logs}
    inside = {number: [reached[number]] for number, (_, end) in one.spans.items() if reached[number] < end}
    with explained(f"read the archive {one.place.path}"):
        before = records_before(rows, inside) if rows is not None else {}
        size = file_bytes(engine.session, paths_of(one.place, one.archive))
    records = {
        number: before.get((number, reached[number]), 0) if number in inside else one.archive.records(number) for number in one.spans
    }
    begins = {number: max(log.log_start_offset, one.spans.get(number, (0, 0))[1]) for number, log in one.logs.items()}
    tail = TopicRange(topic, {number: (start, max(start, reached[number])) for number, start in begins.items()})
    total = sum(one.archive.records(number) for number in one.archive.held_partitions)
    count = sum(records.values())
    return ArchiveShare(
        topic=topic,
        path=one.place.path,
        records=count,
        bytes=round(size * count / max(1, total)),
        topic_records=tail.records,
        topic_bytes=bytes_of(engine.services, [tail]),
    )
