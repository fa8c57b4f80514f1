"""How exact a rebuilt store is, said before anything is written. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kops.core.models import Bounds
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import FAUST, TABLE

REDUCER = "reducer"
_NAMED = 3
MEANINGS = {
    "A": "the same bytes, timestamps and partitions",
    "B": "the same values; other bytes or timestamps are possible",
    "C": "equivalent, but values may differ",
    "D": "cannot be rebuilt from what the topic still holds",
}


@dataclass(frozen=True)
class Exactness:
    """A class from A to D, and why.

    :param grade: the class; ``kops.operations.state.evidence.class_of`` adds ``if the file is right`` to those that nothing testifies to
    :param hides: something may be wrong that a comparison does not show
    :param reasons: a sentence each; what keeps it from A, or what makes it A against expectation
    """

    grade: str
    reasons: tuple[str, ...] = ()
    hides: bool = False

    @property
    def text(self) -> str:
        """Return it in words."""
        why = f": {'; '.join(self.reasons)}" if self.reasons else ""
        return f"exactness {self.grade}, {MEANINGS[self.grade[0]]}{why}"


def contradicted(reasons: Sequence[str]) -> Exactness:
    """Return C for what contradicts a computation, with the first reasons."""
    more = [f"and {len(reasons) - _NAMED} more"] if len(reasons) > _NAMED else []
    return Exactness("C", (*reasons[:_NAMED], *more))


SURE = Exactness("A")
_LAST_LOST = "the last value of a key that was deleted since, and timestamps, are not seen"


def of_input(
    store: Store, bounds: Mapping[int, Bounds], cleanup_policy: str, topic: str, starts: Mapping[int, int] | None = None
) -> Exactness:
    """Judge by what an input topic still holds, before it is read.

    :param bounds: of the input topic, by partition
    :param cleanup_policy: of the input topic
    :param starts: where the application began to read it, of partitions where that was not at offset 0
    """
    if store.reuses_source:
        return Exactness("A")
    kind = _kind_of(store)
    reasons = [
        f"{topic}:{number} begins at offset {bound.log_start_offset}: older records are gone"
        for number, bound in sorted(bounds.items())
        if bound.log_start_offset > (starts or {}).get(number, 0)
    ]
    compacted = "compact" in cleanup_policy.split(",")
    if compacted and kind != TABLE:
        if _is_last_of_key(store):
            return Exactness("C" if not reasons else "D", (*reasons, f"{topic} is compacted: {_LAST_LOST}"))
        reasons.append(f"{topic} is compacted (cleanup.policy={cleanup_policy}): records that a {kind} needs may be gone")
    # What windows have lost with the oldest records is only known once they are computed (`of_windows`).
    if reasons and (store.window is None or compacted):
        return Exactness("D", tuple(reasons))
    return _of_serializer(store)


def of_gaps(store: Store, places: str) -> Exactness:
    """Judge by offsets of the input that have no record: it was compacted, whatever its settings are now.

    :param places: where they are
    """
    reason = f"records are gone from the middle of the input ({places}), as where it was compacted once"
    kind = _kind_of(store)
    if store.reuses_source or (kind == TABLE and not (store.table and store.key_by)):
        return Exactness("A")
    if kind == TABLE:
        return Exactness("C" if store.aggregate.kind == REDUCER else "B", (f"{reason}: timestamps, and groups that are empty, may differ",))
    if _is_last_of_key(store):
        return Exactness("C", (f"{reason}: {_LAST_LOST}",))
    return Exactness("D", (f"{reason}: what they added is not known",))


def _is_last_of_key(store: Store) -> bool:
    """Tell whether a store keeps the last record of each key of its topic, of which compaction keeps one too."""
    changes = store.where or store.key_by or store.explode
    return store.aggregate.kind == "last" and store.window is None and not changes


def _kind_of(store: Store) -> str:
    """Return what a store makes of its records: a table, which needs the last of each key only, or an aggregate."""
    return TABLE if store.table else "table of a filtered stream" if store.drops_before else store.aggregate.kind


def _of_serializer(store: Store) -> Exactness:
    """Judge by whether the application's serializer writes what kops keeps or makes."""
    joined = store.table is not None and store.table.joins
    value = store.source.value
    if store.aggregate.kind == TABLE and joined and store.aggregate.form.name == "json":
        reason = "JSON is written with its fields in the order of the expression, and the application's serde may write it in another way"
        return Exactness("B", (reason,))
    if store.aggregate.form.name == "json" and not store.aggregate.is_whole_value:
        reason = "its values are JSON, which the application's serde may write in another way (numbers, order of fields, letters)"
        return Exactness("B", (reason,))
    if store.aggregate.is_whole_value and not joined and value.is_only_read:
        other = "it in other bytes" if value.plugin else "the id of another schema"
        return Exactness("B", (f"{value} is kept as it was read, and the application's serializer may write {other}",))
    if store.aggregate.is_whole_value and not joined and value.name == "json":
        return Exactness("B", ("JSON is kept as it was read, and the application's serde may write it in another way",))
    return Exactness("A")


def of_changes(state_file: StateFile, store: Store, cleanup_policies: Sequence[str]) -> Exactness:
    """Judge what is grouped from a table by whether every change of it can be known.

    :param cleanup_policies: of the input topics
    """
    if store.table is None or not store.key_by:
        return Exactness("A")
    may = "timestamps, and groups that are empty by now, may differ"
    reasons = [
        f"{source.topic} is compacted, so changes are gone: {may}"
        for source, policy in zip(store.inputs, cleanup_policies, strict=True)
        if "compact" in policy.split(",")
    ]
    if store.others:
        reasons.append(f"in which order {' and '.join(source.topic for source in store.inputs)} were read is not known: {may}")
    if state_file.cache:
        reasons.append(f"the application's cache passes over changes (streams.cache): {may}")
    if not reasons:
        return Exactness("A")
    if store.others and state_file.cache:
        why = (
            "where both sides of a join change between two flushes of its cache, Kafka Streams takes from a group what it never added to it"
        )
        return Exactness("C", (*reasons, f"{why} (streams.cache)"))
    if store.aggregate.kind == REDUCER:
        which = "which values a group has passed through is not known, and a reducer may depend on it"
        return Exactness("C", (*reasons, which))
    return Exactness("B", tuple(reasons))


def of_cached_join(state_file: StateFile, store: Store) -> Exactness:
    """Judge a join that is stored: with a cache it keeps a row whose both sides were deleted between two flushes."""
    table = store.table
    if table is None or store.key_by or not store.others or not state_file.cache:
        return Exactness("A")
    why = "where both sides of a key are deleted between two flushes of the application's cache, Kafka Streams keeps its row"
    return Exactness("B", (f"{why} (streams.cache); here it is unexpected",))


def of_time(store: Store, keys: int, timed: int) -> Exactness:
    """Judge by the rows whose timestamp depends on the order in which topics were read; for groups ``of_changes`` has said it.

    :param keys: that the store should hold
    :param timed: such rows
    """
    if not timed or store.key_by:
        return Exactness("A")
    return Exactness("B", (f"the timestamps of {timed} of {keys} keys depend on the order in which topics were read",))


def of_library(state_file: StateFile) -> Exactness:
    """Judge by the library whose tables the stores are."""
    if state_file.library == FAUST:
        return Exactness("B", ("a table of Faust has no timestamps: those of its input are written, and none is compared",))
    return Exactness("A")


def of_order(store: Store, keys: int, mixed: int) -> Exactness:
    """Judge by what was seen while computing.

    :param keys: that the store should hold
    :param mixed: keys fed by several source partitions, where the order matters
    """
    if not mixed:
        return Exactness("A")
    if store.table and store.aggregate.kind != REDUCER:
        return Exactness("C", (f"{mixed} of {keys} sums round, differently in another order of additions and subtractions",))
    if store.others and not store.key_by:
        return Exactness("C", (f"{mixed} of {keys} keys are fed by several topics, in an order that nothing holds",))
    partitions = f"{mixed} of {keys} keys are fed by several partitions, in an order that only the purged repartition topic had"
    return Exactness("C", (partitions,))


def worst(judgements: Sequence[Exactness]) -> Exactness:
    """Return the worst class, with the reasons of all that are not A."""
    grade = max(judgement.grade for judgement in judgements)
    reasons = tuple(dict.fromkeys(reason for judgement in judgements for reason in judgement.reasons))
    return Exactness(grade, reasons, any(judgement.hides for judgement in judgements))
