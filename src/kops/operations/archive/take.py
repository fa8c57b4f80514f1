"""Archives a topic: what is new since the last time, as Parquet, with what is needed to restore it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import kops
from kops.core.errors import KopsError, Refused, UsageProblem
from kops.core.findings import counted
from kops.core.models import CommittedOffset
from kops.core.own_names import is_own_group
from kops.core.records.models import OffsetRange
from kops.core.selection import parse_selection
from kops.core.settings import own_settings
from kops.core.times import ANY_TIME, time_text, to_milliseconds
from kops.operations.archive.manifest import Archive, Run, archive_json, held_json
from kops.operations.archive.place import ArchivePlace, place_of, refuse_others
from kops.operations.archive.read import read_archive_of
from kops.operations.archive.source import Range, range_of, settings_of, source_of, where_times_are
from kops.operations.engine.spark import Engine, chosen_master, start_engine
from kops.operations.protocol.locks import exclusive
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.replay.tasks import TimeWindow


def take_archive(
    services: Services,
    topic: str,
    to: str,
    *,
    span: str | None = None,
    by: str | None = None,
    accept_gap: bool = False,
    master: str | None = None,
) -> tuple[Archive, Run | None, tuple[str, ...]]:
    """Add what is new in a topic to an archive, or begin one.

    :param span: ``FROM..TO``: no more than that
    :param by: ``day`` or ``hour``; that of the archive when None
    :param accept_gap: continue although records that are not archived were deleted from the topic
    :return: the archive now, what was added, and sentences about it
    :raises Refused: when the archive is another topic's, or would get a gap
    """
    if parse_selection(topic).partitions is not None:
        raise UsageProblem(f"{topic} names partitions", hint="a whole topic is archived")
    place = place_of(to)
    source = source_of(services, None)
    settings = settings_of(services.connection, "source", chosen_master(services, master))
    found = range_of(services, source, topic, span)
    engine = start_engine(services, master)
    with exclusive(services.directories.locks, "archives", [place.path]):
        before = read_archive_of(engine, place)
        if before is None:
            refuse_others(place)
        now = _current(services, topic, before, by)
        if found.offsets and found.times != ANY_TIME:
            found = _with_others(*where_times_are(engine, settings, _not_archived(found, now)))
        ranges, notes = _new_ranges(found, now, accept_gap=accept_gap)
        if before is not None and now.topic_id is None:
            notes.append(f"these brokers give topics no ids: kops cannot see whether {topic} was recreated since it was archived")
        groups, unread = _groups_of(services, topic)
        place.make()
        now = replace(now, groups=groups)
        run = _written(engine, place, now, settings, ranges) if any(start < end for start, end in ranges.values()) else None
        added = run if run or now.runs else Run("", now.taken, ranges, {})  # records where the archive of an empty topic begins
        after = replace(now, runs=(*now.runs, added)) if added else now
        place.write(engine, archive_json(after))
    said = tuple(note.replace(" is sent", " is archived") for note in found.notes)
    return after, run, (*said, *notes, *unread, *(_left_out(run) if run else ()))


def _not_archived(found: Range, archive: Archive) -> Range:
    """Return a range without the offsets that are archived, unless it begins before them, which ``_new_ranges`` reports."""
    ranges = dict(found.ranges)
    for number, some in found.ranges.items():
        first, last = archive.span(number) or (0, 0)
        if first <= some.start < last:
            ranges[number] = OffsetRange(last, max(last, some.end))
    return replace(found, ranges=ranges)


def _with_others(found: Range, windows: Mapping[int, TimeWindow]) -> Range:
    """Return a range of time as an archive holds it, without holes: with the records of other times that stand between those of it."""
    others = sum(window.others for window in windows.values())
    note = f"{counted(others, 'record')} of other times between them {'is' if others == 1 else 'are'} archived too: an archive has no holes"
    return replace(found, notes=(*found.notes, note)) if others else found


def _current(services: Services, topic: str, before: Archive | None, by: str | None) -> Archive:
    """Return the archive with the topic as it is now.

    :raises Refused: when the archive is of something else
    """
    described = services.kafka.topics.describe([topic])[topic]
    cluster_id = services.kafka.cluster().cluster_id
    if before is not None:
        if (before.topic, before.cluster_id) != (topic, cluster_id):
            raise Refused(
                f"the archive is of {before.topic} of cluster {before.cluster_id}, not of {topic} of {cluster_id}",
                hint="use a separate folder for each topic",
            )
        if before.topic_id != described.topic_id:
            raise Refused(
                f"{topic} was deleted and recreated since it was archived: its offsets no longer match", hint="begin a new archive"
            )
        if by not in (None, before.by):
            raise Refused(f"the archive is by {before.by}", hint=f"leave --by out, or begin a new archive by {by}")
    own = own_settings(services.kafka.topics.settings([topic])[topic])
    return Archive(
        topic=topic,
        topic_id=described.topic_id,
        cluster_id=cluster_id,
        partitions=len(described.partitions),
        replication_factor=described.replication_factor,
        settings={name: value for name, value in own.items() if "throttled" not in name},
        by=before.by if before else by or "day",
        taken=time_text(to_milliseconds(services.now())),
        kops=kops.__version__,
        runs=before.runs if before else (),
    )


def _new_ranges(found: Range, archive: Archive, *, accept_gap: bool) -> tuple[dict[int, tuple[int, int]], list[str]]:
    """Return the ranges to archive: from where the archive ends, without gap or overlap.

    :raises Refused: when the next records are gone, or ``--range`` leaves them out
    """
    ranges, notes = {}, []
    for number, some in sorted(found.ranges.items()):
        known = archive.span(number)
        if known is None:
            ranges[number] = (some.start, some.end)
            continue
        first, last = known
        start = last
        if some.start > last:
            gap = f"{archive.topic}:{number} is archived up to offset {last}, and what comes now begins at {some.start}"
            if not accept_gap:
                raise Refused(
                    f"{gap}: {some.start - last:,} offsets would be missing",
                    hint="begin --range earlier if you gave one; if they are deleted for good, --accept-gap records the gap and continues",
                )
            notes.append(f"{gap}: a gap, as accepted")
            start = some.start
        elif some.start < first:
            notes.append(f"{archive.topic}:{number} has records before offset {first}, where the archive begins: only new ones are added")
        ranges[number] = (start, max(start, some.end))
    return ranges, notes


def _written(
    engine: Engine, place: ArchivePlace, archive: Archive, settings: Mapping[str, str], ranges: Mapping[int, tuple[int, int]]
) -> Run:
    """Write a run's records, which no manifest names yet."""
    from kops.spark.driver.failures import explained
    from kops.spark.reading.archive import read_topic, write_archive

    services, session = engine.services, engine.session  # must have started before anything else imports pyspark
    place.forget_others([run.name for run in archive.runs])
    name = f"{services.now():%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    some = {number: bounds for number, bounds in ranges.items() if bounds[0] < bounds[1]}
    services.progress.step(f"archiving up to {counted(sum(end - start for start, end in some.values()), 'record')} of {archive.topic}")
    with explained(f"archive {archive.topic}"):
        held = write_archive(read_topic(session, archive.topic, settings, some), place.records(name), archive.by)
    if held:
        place.require_seen(engine, name)
        place.make_durable(name)
    return Run(name, archive.taken, dict(ranges), held_json(held))


def _groups_of(services: Services, topic: str) -> tuple[dict[str, dict[int, CommittedOffset]], list[str]]:
    """Return the offsets that groups have committed for a topic, and the groups whose offsets could not be read."""
    ids = [each.group_id for each in services.kafka.groups.listed() if each.type != "share" and not is_own_group(each.group_id)]
    answers = services.kafka.groups.committed_or_errors(ids) if ids else {}
    errors = [f"group {group}: {answer.message}" for group, answer in answers.items() if isinstance(answer, KopsError)]
    found = {
        group: {place.partition: one for place, one in answer.items() if place.topic == topic and one is not None}
        for group, answer in answers.items()
        if not isinstance(answer, KopsError)
    }
    return {group: offsets for group, offsets in found.items() if offsets}, [f"not archived: the offsets of {error}" for error in errors]


def _left_out(run: Run) -> list[str]:
    empty = sum(end - start for start, end in run.ranges.values()) - run.records
    return [f"{empty:,} offsets have no record: aborted transactions, markers of transactions, or compacted away"] if empty else []


def described(archive: Archive, run: Run | None, path: str) -> dict[str, Any]:
    spans = {number: archive.span(number) or (0, 0) for number in range(archive.partitions)}
    return {
        "path": path,
        "topic": archive.topic,
        "cluster_id": archive.cluster_id,
        "by": archive.by,
        "taken": archive.taken,
        "records_added": run.records if run else 0,
        "offsets_added": sum(end - start for start, end in run.ranges.values()) if run else 0,
        "records": sum(archive.records(number) for number in range(archive.partitions)),
        "runs": len(archive.runs),
        "partitions": [
            {
                "partition": number,
                "start": start,
                "end": end,
                "records": archive.records(number),
                "added": run.contents.get(number, {}).get("records", 0) if run else 0,
                "gaps": [{"start": one, "end": other} for one, other in archive.gaps(number)],
            }
            for number, (start, end) in spans.items()
        ],
        "groups": {
            group: {str(number): found.offset for number, found in sorted(offsets.items())} for group, offsets in archive.groups.items()
        },
    }
