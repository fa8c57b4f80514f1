"""Whether keys are where the state file places them: in partitions that the store's topics feed, by the partitioner that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from kops.core.errors import Refused
from kops.core.statefile import Store
from kops.operations.state.exactness import Exactness, worst
from kops.operations.state.facts import StoreFacts

if TYPE_CHECKING:
    from kops.spark.types import SparkSession

UNKNOWN = -1
"""As in ``kops.spark.stores.partitions``."""


class Placed(Protocol):
    """A store that was computed (``compute.Computed``)."""

    @property
    def facts(self) -> StoreFacts:
        """The store and its topics."""

    @property
    def actions(self) -> Mapping[int, Mapping[str, int]]:
        """How many keys are added, changed, removed, by partition."""


def of_places(
    session: SparkSession, facts: StoreFacts, stage: str, actions: Mapping[int, Mapping[str, int]], damaged: Collection[int] = ()
) -> Exactness:
    """Judge by keys that the changelog holds where the state file would not place them.

    :param stage: path of the difference; ``actions``: what is in it, by partition
    :param damaged: partitions whose keys contradict nothing
    """
    removed = {number: found["removed"] for number, found in actions.items() if found.get("removed") and number not in damaged}
    return worst([Exactness("A"), _spare(facts, removed), _strays(session, facts, stage, removed)])


def _spare(facts: StoreFacts, removed: Mapping[int, int]) -> Exactness:
    store, beyond = facts.store, sum(removed.get(number, 0) for number in facts.spare)
    if not beyond:
        return Exactness("A")
    feeding = store.repartition_topic or " and ".join(source.topic for source in store.inputs)
    reason = f"{store.changelog} holds {beyond:,} keys beyond partition {facts.tasks - 1}, the last that {feeding} feeds: the state file"
    return Exactness("C", (f"{reason} names not all of the store's topics, or others",))


def _strays(session: SparkSession, facts: StoreFacts, stage: str, removed: Collection[int]) -> Exactness:
    from kops.spark.driver.failures import explained
    from kops.spark.stores.partitions import strays
    from kops.spark.windows.keys import suffix_of

    store = facts.store
    if not removed or not store.moves or store.custom_partitioner:
        return Exactness("A")
    with explained(f"compare {store.name}"):
        count, first = strays(session, stage, facts.tasks, removed, suffix_of(store.window) if store.window else 0)
    if first is None:
        return Exactness("A")
    example = f"{bytes(first.key)!r} is in {store.changelog}:{first.found}, and the default partitioner puts it in {first.partition}"
    return Exactness(
        "C",
        (
            f"{count:,} keys of the changelog are in other partitions ({example}): the application has a partitioner of its own"
            " (partitioner: custom), or another key",
        ),
    )


def refuse_unplaced(computed: Iterable[Placed]) -> None:
    """Refuse to write keys whose partition is unknown.

    :raises Refused: when a partitioner of the application's own chose it, and the changelog has forgotten it
    """
    for found in computed:
        unplaced = sum(found.actions.get(UNKNOWN, {}).values())
        if unplaced:
            raise Refused(
                f"store {found.facts.store.name}: the partition of {unplaced:,} keys is not known: the application chose it"
                f" (partitioner: custom), and {found.facts.store.changelog} no longer shows it",
                hint="a snapshot from before has them (`kops state restore`); otherwise let the application reprocess its input",
                store=found.facts.store.name,
            )


def spare_note(store: Store, tasks: int, partitions: int) -> str:
    """Return what should be known about a changelog with more partitions than its store's own topics."""
    feeding = store.repartition_topic or " and ".join(source.topic for source in store.inputs)
    return (
        f"{store.changelog} has {partitions} partitions and {feeding} has {tasks}: as where the sub-topology reads a topic with more; the"
        " others stay empty"
    )
