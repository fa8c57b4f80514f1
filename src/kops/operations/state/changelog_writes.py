"""Writes a store's staged records to its changelog and reads them back, with their headers where these are staged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kops.core.errors import OperationFailed, Refused, VerificationFailed
from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.plan import Item, ItemResult, Status
from kops.operations.archive.manifest import held_json
from kops.operations.engine.spark import Engine, write_progress
from kops.operations.engine.stable import own_transactions, wait_until_stable
from kops.operations.protocol.mutation import failed
from kops.operations.services import Services
from kops.operations.state.arguments import Contents, StateArguments, StoreWrite
from kops.operations.state.facts import StoreFacts
from kops.operations.state.guard import log_ends

if TYPE_CHECKING:
    from kops.spark.reading.snapshot import Content
    from kops.spark.staging.writer import WriteTarget
    from kops.spark.types import DataFrame

_PRINT = ("records", "high", "low")
"""What two equal contents have in common: the number of records, and the sum of their hashes."""


def append(
    engine: Engine, arguments: StateArguments, name: str, starts: Mapping[TopicPartition, int], items: Mapping[str, Item]
) -> Iterator[ItemResult]:
    """Write one store's records and yield a result per partition."""
    from kops.spark.reading.snapshot import read_snapshot
    from kops.spark.staging.writer import write_records, write_stage

    store = arguments.stores[name]
    ends = {partition: end for partition, end in starts.items() if partition.topic == store.changelog}
    target = _target(engine, arguments, name, len(ends))
    engine.services.progress.step(f"writing {counted(store.records, 'record')} to {store.changelog}")
    with write_progress(engine.services, ends, store.records):
        if store.with_headers:
            written = write_records(read_snapshot(engine.session, store.stage), target)
        else:
            written = write_stage(engine.session, store.stage, target, backwards=store.backwards)
    for number, content in sorted(store.contents.items()):
        report, item = written.get(number), items[f"{store.changelog}:{number}"]
        count = report.written if report else 0
        if (report and report.failed) or count != content["records"]:
            reason = (report.error if report else None) or "the others are missing"
            why = f"{count} of {content['records']} records of {item.target} were written: {reason}"
            error = OperationFailed(why, hint="`kops journal finish` writes all of them again")
            yield ItemResult(item.target, Status.PARTIAL, error=error.as_json()) if count else failed(item, error)
        else:
            yield ItemResult(item.target, Status.DONE, value={"records": count, "tombstones": content["tombstones"]})


def _target(engine: Engine, arguments: StateArguments, name: str, partitions: int) -> WriteTarget:
    from kops.config.librdkafka import librdkafka_settings
    from kops.spark.staging.writer import WriteTarget

    store, settings = arguments.stores[name], librdkafka_settings(engine.services.connection)
    transactional_id = f"{own_transactions(arguments.application)}{name}" if arguments.exactly_once else None
    headers = store.with_headers or store.staged_headers
    return WriteTarget(store.changelog, settings, transactional_id, partitions=partitions, in_order=store.in_order, headers=headers)


def wrong_partitions(engine: Engine, arguments: StateArguments, name: str, starts: Mapping[TopicPartition, int]) -> dict[str, str]:
    """Read a store back, and return the changelog partitions whose new records are not those of the stage.

    :returns: by target how they differ; empty where only the fact is known, as for a snapshot with headers
    """
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.snapshot import snapshot_contents, snapshot_view
    from kops.spark.staging.writer import differing_tails

    store = arguments.stores[name]
    topic, after = store.changelog, log_ends(engine.services, [store.changelog])
    if arguments.exactly_once:
        wait_until_stable(engine.services, after)
    engine.services.progress.step(f"reading {topic} back")
    ranges = {partition.partition: (starts[partition], end) for partition, end in after.items()}
    new = TopicRange(topic, ranges, arguments.exactly_once, headers=store.with_headers or store.staged_headers)
    wanted = fingerprints(store.contents)
    with explained(f"read {topic} back"), engine.reading(new):
        if store.with_headers:
            found = snapshot_contents(snapshot_view(engine.kafka().read(new), versioned=store.in_order))
            differing = {
                number: "" for number in {*wanted, *found} if number not in found or wanted.get(number) != found[number].fingerprint
            }
        else:
            differing = differing_tails(engine.kafka(), new, _staged(engine, store), wanted)
    return {f"{topic}:{number}": how for number, how in differing.items()}


def judged(result: ItemResult, wrong: Mapping[str, str]) -> ItemResult:
    """Return a result, marked as failed if its partition was read back different."""
    if result.status is not Status.DONE or result.target not in wrong:
        return result
    how = f": {wrong[result.target]}" if wrong[result.target] else ""
    error = VerificationFailed(
        f"{result.target} was read back different from what was written{how}",
        hint="something else writes to this changelog: make sure that the application is stopped everywhere, then run the command again",
    )
    return ItemResult(result.target, Status.FAILED, error=error.as_json())


def _staged(engine: Engine, store: StoreWrite) -> DataFrame:
    from kops.spark.staging.difference import to_append
    from kops.spark.staging.stage import read_stage

    return to_append(read_stage(engine.session, store.stage, headers=store.staged_headers), backwards=store.backwards)


def contents_backwards(engine: Engine, store: StoreWrite) -> Contents:
    from kops.spark.staging.stage import contents_of

    return held_json(contents_of(_staged(engine, replace(store, backwards=not store.backwards))))


def fingerprints(contents: Contents) -> dict[int, list[int]]:
    return {number: [content[part] for part in _PRINT] for number, content in contents.items()}


def refuse_without_stages(arguments: StateArguments) -> None:
    """Refuse when a stage is gone: records that are to be written, or those that a recreated changelog held before.

    A stage that only Spark's workers can reach is not checked.
    """
    for store in arguments.stores.values():
        stages = [store.stage] if store.contents else []
        stages += [store.prior_stage] if store.prior_contents else []
        for stage in stages:
            if stage and "://" not in stage and arguments.master.startswith("local") and not Path(stage).is_dir():
                raise Refused(f"the staged records of {store.changelog} are gone: {stage}", hint="make the plan again")


def refuse_incomplete(engine: Engine, store: StoreWrite) -> None:
    """Refuse when the staged copy of a changelog that is about to be deleted is incomplete."""
    from kops.spark.reading.snapshot import read_snapshot, snapshot_contents
    from kops.spark.staging.difference import to_append
    from kops.spark.staging.stage import contents_of, read_stage

    path, session = store.prior_stage, engine.session
    if store.with_headers:
        kept = {number: found.fingerprint for number, found in snapshot_contents(read_snapshot(session, path)).items()}
    else:
        kept = {number: found.fingerprint for number, found in contents_of(to_append(read_stage(session, path))).items()}
    if kept != fingerprints(store.prior_contents):
        raise Refused(f"what is kept of {store.changelog} is not whole: {path}", hint="make the plan again")


def refuse_time_zero(services: Services, topic: str, earliest: Iterable[int], *, exactly_once: bool) -> None:
    """Refuse a timestamp of 0 where only librdkafka can write: it takes 0 to mean now.

    :param earliest: the earliest timestamp of each partition of the records to be written
    :raises Refused: naming the topic
    """
    from kops.config.librdkafka import librdkafka_settings
    from kops.spark.staging.writer import WriteTarget, writes_whole_batches

    target = WriteTarget(topic, librdkafka_settings(services.connection), "" if exactly_once else None)
    if min(earliest, default=1) <= 0 and not writes_whole_batches(target):
        raise Refused(
            f"{topic} would get a record with the timestamp 0, which cannot be written in a transaction, or over this connection",
            hint="give the records of the input a time, or rebuild the store by reprocessing",
        )


def refuse_times(services: Services, facts: StoreFacts, contents: Iterable[Content], now_ms: int, *, exactly_once: bool) -> None:
    """Refuse timestamps that the brokers would reject for a changelog (KIP-937), and a 0 that kops cannot write."""
    topic, settings = facts.store.changelog, facts.settings
    before, after = (int(settings.get(f"message.timestamp.{side}.max.ms") or 2**63 - 1) for side in ("before", "after"))
    for content in contents:
        for side, off, limit in (("before", now_ms - content.earliest, before), ("after", content.latest - now_ms, after)):
            if off > limit:
                raise Refused(
                    f"{topic} takes no timestamps that lie more than {limit} ms {side} now, and the store has some",
                    hint=f"raise message.timestamp.{side}.max.ms of {topic}",
                )
        refuse_time_zero(services, topic, [content.earliest], exactly_once=exactly_once)
