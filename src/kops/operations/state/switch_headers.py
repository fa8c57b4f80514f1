"""Stores whose records have headers, as those of joins and of suppress do: staged as snapshots are, written and read back with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kops.core.errors import OperationFailed, VerificationFailed
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.operations.protocol import failed
from kops.operations.state.engine import Engine
from kops.operations.state.guard import log_ends
from kops.operations.state.tail import wait_until_stable


def append_with_headers(engine: Engine, plan: Plan, name: str, items: Mapping[str, Item]) -> Iterator[ItemResult]:
    """Write one store's records and yield a result for each partition.

    :param plan: with where each partition of the changelog ends
    """
    from kops.config.librdkafka import librdkafka_settings
    from kops.spark.snapshot import read_snapshot
    from kops.spark.writer import Target, Written, write_records

    store, arguments = plan.arguments["stores"][name], plan.arguments
    topic, ends = store["changelog"], _ends(plan, store["changelog"])
    total = sum(content["records"] for content in store["contents"].values())
    engine.services.progress.step(f"writing {total:,} records to {topic}")
    transactional_id = f"kops-{arguments['application']}-{name}" if arguments["exactly_once"] else None
    settings = librdkafka_settings(engine.services.connection)
    target = Target(topic, settings, transactional_id, partitions=len(ends), in_order=store["in_order"], headers=True)
    written = write_records(read_snapshot(engine.session, store["stage"]), target)
    for number, content in sorted(store["contents"].items(), key=lambda pair: int(pair[0])):
        report, item = written.get(int(number), Written(0, 0)), items[f"{topic}:{number}"]
        if report.failed or report.written != content["records"]:
            reason = report.error or "the others are missing"
            why = f"{report.written} of {content['records']} records of {item.target} were written: {reason}"
            yield failed(item, OperationFailed(why, hint="`kops journal finish` writes all of it again"))
        else:
            yield ItemResult(item.target, Status.DONE, value={"records": report.written, "tombstones": content["tombstones"]})


def verified_with_headers(engine: Engine, plan: Plan, name: str, results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return results after reading a store back: number of records and sum of hashes, headers included."""
    from kops.spark.failures import explained
    from kops.spark.snapshot import Held, held, snapshot_view
    from kops.spark.source import TopicRange

    store, exactly_once = plan.arguments["stores"][name], plan.arguments["exactly_once"]
    topic, before = store["changelog"], _ends(plan, store["changelog"])
    after = log_ends(engine.services, [topic])
    if exactly_once:
        wait_until_stable(engine.services, after)
    engine.services.progress.step(f"reading {topic} back")
    ranges = {partition.partition: (before[str(partition)], end) for partition, end in after.items()}
    tail = TopicRange(topic, ranges, exactly_once, headers=True)
    with explained(f"read {topic} back"), engine.reading(tail):
        found = held(snapshot_view(engine.kafka().read(tail), versioned=store["in_order"]))
    wanted = {int(number): Held(**content).fingerprint for number, content in store["contents"].items()}
    wrong = {f"{topic}:{number}" for number in {*wanted, *found} if number not in found or wanted.get(number) != found[number].fingerprint}
    return [_judged(result, wrong) for result in results]


def _judged(result: ItemResult, wrong: set[str]) -> ItemResult:
    if result.status is not Status.DONE or result.target not in wrong:
        return result
    error = VerificationFailed(
        f"{result.target} was read back different from what was written",
        hint="something else writes to this changelog: see that the application is stopped everywhere, then run it again",
    )
    return ItemResult(result.target, Status.FAILED, error=error.as_json())


def _ends(plan: Plan, topic: str) -> dict[str, Any]:
    return {target: end for target, end in plan.guard["changelog_ends"].items() if target.rpartition(":")[0] == topic}
