"""Stores whose records have headers, as those of joins and of suppress do: staged as snapshots are, written and read back with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kops.core.plan import Item, ItemResult, Plan
from kops.operations.state.appending import read_back_judged, target_of, written_results
from kops.operations.state.engine import Engine
from kops.operations.state.guard import log_ends
from kops.operations.state.tail import wait_until_stable


def append_with_headers(engine: Engine, plan: Plan, name: str, items: Mapping[str, Item]) -> Iterator[ItemResult]:
    """Write one store's records and yield a result for each partition.

    :param plan: with where each partition of the changelog ends
    """
    from kops.spark.reading.snapshot import read_snapshot
    from kops.spark.staging.writer import write_records

    store = plan.arguments["stores"][name]
    target = target_of(engine, plan, name, len(_ends(plan, store["changelog"])), headers=True)
    written = write_records(read_snapshot(engine.session, store["stage"]), target)
    yield from written_results(store, written, items, "`kops journal finish` writes all of it again")


def verified_with_headers(engine: Engine, plan: Plan, name: str, results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return results after reading a store back: number of records and sum of hashes, headers included."""
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.snapshot import Held, held, snapshot_view

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
    differing = (number for number in {*wanted, *found} if number not in found or wanted.get(number) != found[number].fingerprint)
    wrong = dict.fromkeys((f"{topic}:{number}" for number in differing), "")
    return [read_back_judged(result, wrong) for result in results]


def _ends(plan: Plan, topic: str) -> dict[str, Any]:
    return {target: end for target, end in plan.guard["changelog_ends"].items() if target.rpartition(":")[0] == topic}
