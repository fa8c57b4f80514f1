"""Keys that a changelog holds where its application would not place them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from kops.core.findings import Finding
from kops.core.streams.verdict import doubt
from kops.operations.state.facts import StoreFacts

if TYPE_CHECKING:
    from kops.spark.types import SparkSession


def misplaced(
    session: SparkSession, facts: StoreFacts, stage: str, actions: Mapping[int, Mapping[str, int]], damaged: Collection[int]
) -> Iterator[Finding]:
    """Judge by keys that the changelog holds where the state file would not place them.

    :param damaged: partitions whose keys contradict nothing
    """
    removed = {number: found["removed"] for number, found in actions.items() if found.get("removed") and number not in damaged}
    yield from _spare(facts, removed)
    yield from _strays(session, facts, stage, removed)


def _spare(facts: StoreFacts, removed: Mapping[int, int]) -> Iterator[Finding]:
    store, beyond = facts.store, sum(removed.get(number, 0) for number in facts.spare)
    if beyond:
        feeding = store.repartition_topic or " and ".join(source.topic for source in store.inputs)
        where = f"beyond partition {facts.tasks - 1}, the last that {feeding} feeds"
        yield doubt(
            "misplaced_keys",
            f"{store.changelog} holds {beyond:,} keys {where}: the state file names not all of the store's topics, or others",
        )


def _strays(session: SparkSession, facts: StoreFacts, stage: str, removed: Collection[int]) -> Iterator[Finding]:
    from kops.spark.driver.failures import explained
    from kops.spark.stores.partitions import strays
    from kops.spark.windows.keys import suffix_of

    store = facts.store
    if not removed or not store.moves or store.custom_partitioner:
        return
    with explained(f"compare {store.name}"):
        count, first = strays(session, stage, facts.tasks, removed, suffix_of(store.window) if store.window else 0)
    if first is not None:
        example = f"{bytes(first.key)!r} is in {store.changelog}:{first.found}, and the default partitioner puts it in {first.partition}"
        why = "the application has a partitioner of its own (partitioner: custom), or another key"
        yield doubt("misplaced_keys", f"{count:,} keys of the changelog are in other partitions ({example}): {why}")
