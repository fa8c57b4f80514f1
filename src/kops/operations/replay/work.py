"""Spark jobs for the plan of a replay."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

from kops.core.errors import UsageProblem
from kops.core.models import TopicPartition
from kops.core.statefile.sources import Form
from kops.operations.archive.source import settings_of, source_of
from kops.operations.engine.spark import Engine, report_folder, start_engine, write_progress
from kops.operations.replay.arguments import Given, RedriveArguments, ReplayArguments, RestoreArguments
from kops.operations.replay.request import BY_KEY, EXACTLY_ONCE, KEEP, Changes, parse_form
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.replay.jobs import Job, Outcome, PartitionRange
    from kops.spark.replay.sender import PartitionProgress
    from kops.spark.types import DataFrame

ROWS: Mapping[type[ReplayArguments], str] = {
    RestoreArguments: "kops.operations.replay.restore:rows_of_archive",
    RedriveArguments: "kops.operations.replay.redrive_letters:rows_of_dead_letters",
}
"""The function that makes the rows of a plan whose source is not a range of a topic, in the order of the offsets."""


@dataclass
class Work(Generic[Given]):
    """What tasks need.

    :param arguments: of the plan
    """

    services: Services
    arguments: Given

    @cached_property
    def engine(self) -> Engine:
        """Spark, which starts in the background on first use."""
        return start_engine(self.services, self.arguments.master, sql=self.makes_rows)

    @property
    def makes_rows(self) -> bool:
        """Whether Spark makes rows of the records; otherwise whole batches are copied."""
        return self.changes.some or type(self.arguments) in ROWS

    @cached_property
    def _progress_folder(self) -> str | None:
        """The folder where tasks on this machine write how many records they have sent; None where they do not."""
        return report_folder(self.services) if self.arguments.master.startswith("local") and not self.makes_rows else None

    def sending(self, ends: Mapping[TopicPartition, int], total: int) -> AbstractContextManager[None]:
        """Show how many records were sent, while they are being sent.

        :param ends: of the targets, as they are before
        """
        from kops.spark.driver.watch import any_held, records_reported, watching

        folder = self._progress_folder
        if folder is None:
            return write_progress(self.services, ends, total)
        return watching(self.services.progress, lambda: records_reported(folder), total, "records", held=lambda: any_held(folder))

    def begin(self) -> None:
        """Begin to start Spark.

        :raises MissingRequirement: without Java
        """
        _ = self.engine

    @property
    def changes(self) -> Changes:
        return self.arguments.changes

    def source_settings(self) -> dict[str, str]:
        return settings_of(source_of(self.services, self.arguments.source_context).connection, "source", self.arguments.master)

    def job(self, parts: int) -> Job:
        from kops.formats.batches.compression import CODECS
        from kops.formats.batches.encode import MAX_BATCH_BYTES
        from kops.spark.replay.jobs import Job
        from kops.spark.replay.slices import Destinations

        given = self.arguments
        destinations = Destinations(
            given.anchor,
            given.targets,
            by_key=given.partition_by == BY_KEY,
            most=min(MAX_BATCH_BYTES, given.largest),
            codec=CODECS[given.compression],
        )
        return Job(
            source=given.source,
            source_settings=self.source_settings(),
            target_settings=settings_of(self.services.connection, "target", self.arguments.master),
            name=given.replay,
            anchor=given.anchor,
            destinations=destinations,
            transactional=given.guarantee == EXACTLY_ONCE,
            rate=given.rate and given.rate / min(parts, self._slots(parts)),
            inflated=given.inflated,
            times=given.times,
            progress_topic=given.progress_topic,
        )

    def _slots(self, parts: int) -> int:
        """Return how many tasks run at once; as many as there are parts where only the cluster knows."""
        match = re.fullmatch(r"local(?:\[(\*|\d+)(?:,.*)?\])?", self.arguments.master)
        if not match:
            return parts
        return (os.cpu_count() or 1) if match[1] == "*" else int(match[1] or 1)

    def rows(self, parts: Sequence[PartitionRange]) -> DataFrame:
        from kops.spark.reading.batch_source import BatchSource
        from kops.spark.replay.expressions import by_function, changed, decoded, placed, routed

        given = self.arguments
        if type(given) in ROWS:
            return _rows_of(given)(self, parts)
        changes, (key, value) = self.changes, self._forms
        records = BatchSource(self.engine.session, self.source_settings()).read(self._range(parts))
        seen = decoded(records, given.source, key, value, skip=changes.skip)
        topic, partition = changes.topic, given.partition_by
        if not changes.function:
            seen, topic, partition = placed(seen, topic, partition)
        new = changed(seen, changes.where, assignments=changes.plain, headers=changes.headers, key=key, value=value)
        if changes.function:
            new = by_function(new, changes.function, given.source)
        return routed(new, topic, partition, given.anchor)

    def new_content(self, parts: Sequence[PartitionRange]) -> DataFrame:
        """Return the offsets of the records to send, and their new contents, one task per part."""
        from kops.spark.replay.columns import TYPES, columns_named

        changes, (key, value) = self.changes, self._forms
        try:
            return self._new_content(parts, columns_named(changes.expressions(), key, value))
        except UsageProblem:  # an expression uses columns that it does not name
            return self._new_content(parts, tuple(TYPES))

    def _new_content(self, parts: Sequence[PartitionRange], columns: tuple[str, ...]) -> DataFrame:
        from kops.spark.reading.batch_source import BatchSource, RowBuilder
        from kops.spark.replay.columns import schema_of
        from kops.spark.replay.expressions import decoded, new_content

        changes, given, (key, value) = self.changes, self.arguments, self._forms
        source = BatchSource(self.engine.session, self.source_settings())
        records = source.reduced(self._range(parts), schema_of(columns), RowBuilder(columns))
        return new_content(
            decoded(records, given.source, key, value, skip=changes.skip),
            changes.where,
            assignments=changes.plain,
            headers=changes.headers,
            topic=changes.topic,
            partition=None if given.partition_by in (KEEP, BY_KEY) else given.partition_by,
            key=key,
            value=value,
        )

    def _range(self, parts: Sequence[PartitionRange]) -> TopicRange:
        from kops.spark.reading.ranges import TopicRange

        ranges = {part.partition: (part.start, part.end) for part in parts}
        return TopicRange(self.arguments.source, ranges, read_committed=True, headers=True, split=False, times=self.arguments.times)

    @property
    def _forms(self) -> tuple[Form, Form]:
        return parse_form(self.changes.key), parse_form(self.changes.value)

    def send(self, parts: Sequence[PartitionRange], already: Mapping[int, PartitionProgress]) -> list[Outcome]:
        """Send some parts, each in a task; with a limit one after another.

        :param already: what of each part is in the target
        """
        limit = self.arguments.limit
        if limit is None:
            return self._send(parts, replace(self.job(len(parts)), known=already))
        outcomes: list[Outcome] = []
        sent = {number: one.records for number, one in already.items()}
        for part in parts:
            left = limit - sum(sent.values())
            if left <= 0:
                break
            most = sent.get(part.partition, 0) + left
            outcomes += self._send([part], replace(self.job(1), most=most, known=already))
            sent[part.partition] = outcomes[-1].records
        return outcomes

    def _send(self, parts: Sequence[PartitionRange], job: Job) -> list[Outcome]:
        if not self.makes_rows:
            spark = self.engine.tasks  # must have started before anything else imports pyspark
            from kops.spark.replay.tasks import copy

            return copy(spark, job, parts, self._progress_folder)
        _ = self.engine.session
        from kops.spark.driver.failures import explained
        from kops.spark.replay.columns import literal, send_changed
        from kops.spark.replay.jobs import KEPT, send_rows

        with explained(f"replay {job.source}", hint=KEPT):
            if self.changes.function or type(self.arguments) in ROWS:
                return send_rows(self.rows(parts), job, parts)
            same = {name: literal(expression) for name, expression in self.changes.headers.items()}
            return send_changed(self.new_content(parts), job, parts, same)


def _rows_of(arguments: ReplayArguments) -> Callable[[Work[Any], Sequence[PartitionRange]], DataFrame]:
    module, attribute = ROWS[type(arguments)].split(":")
    found: Callable[[Work[Any], Sequence[PartitionRange]], DataFrame] = getattr(importlib.import_module(module), attribute)
    return found


def ranges_left(arguments: ReplayArguments, done: Mapping[int, PartitionProgress]) -> list[PartitionRange]:
    """Return the ranges of a plan that are not completely sent."""
    from kops.spark.replay.jobs import PartitionRange

    return [
        PartitionRange(number, start, end)
        for number, (start, end) in sorted(arguments.ranges.items())
        if reached(done, number, start) < end
    ]


def reached(done: Mapping[int, PartitionProgress], number: int, start: int) -> int:
    """Return the next offset of a partition to send."""
    return done[number].offset if number in done else start
