"""What kops itself did to an application, by its journal: which state it wrote, and where it moved the group.

State that kops computed is not evidence for what kops computes. And what is computed from the log start up to the committed offsets is the
state of the application only while nothing but the application moves these: a move by kops contradicts it, until the store is rebuilt.
Only entries of this machine are seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kops.core.findings import Finding
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.offsets.moves import GroupMoves
from kops.core.plan import Plan
from kops.core.statefile import Store
from kops.core.streams.verdict import ALL_KEYS, doubt
from kops.operations.offsets.arguments import Moves
from kops.operations.offsets.delete_groups import NAME as DELETE_GROUPS
from kops.operations.offsets.delete_groups import Deletion
from kops.operations.offsets.items import offset_of
from kops.operations.protocol.journal import Entry, EntryStatus, Journal
from kops.operations.services import Services
from kops.operations.state.arguments import StateArguments, arguments_of
from kops.operations.streams.reset import NAME as RESET
from kops.operations.streams.reset import ResetArguments

RESTORE = "state.restore"
COMPUTED = ("state.rebuild", "state.replace", "state.into")
"""Operations that write what kops has computed."""
_REPARTITION = "state.repartition"
_CHANGES = (*COMPUTED, RESTORE, _REPARTITION)
_MOVES = ("offsets.move", "offsets.delete")
_NOTHING_DONE = (EntryStatus.REFUSED, EntryStatus.FAILED)

Steps = Mapping[TopicPartition, "tuple[int | None, int | None]"]
"""Committed offsets before and after, by partition; None: no commit."""


@dataclass(frozen=True)
class _JournalledChange:
    """An entry of the journal.

    :param change: what it did to the state of the application; None: it did something else
    :param steps: how it moved the application's committed offsets
    """

    entry: Entry
    change: StateArguments | None
    steps: Steps

    @classmethod
    def of(cls, entry: Entry, application: str) -> _JournalledChange:
        """Read an entry.

        :raises UsageProblem: when the arguments of a change of state are damaged
        """
        if entry.plan.operation not in _CHANGES:
            return cls(entry, None, _steps(entry.plan, application))
        change = arguments_of(entry.plan)
        if change.application != application:
            return cls(entry, None, {})
        return cls(entry, change, _between(change.prior, change.commit))

    @property
    def lasts(self) -> bool:
        """Whether it was not undone, and undoes none itself."""
        return not self.entry.undoes and not self.entry.undone_by


@dataclass(frozen=True)
class _Move:
    """A partition of the input in which kops moved the group.

    :param before: the offset that the application had reached
    :param now: the offset that kops set; None: the commit was deleted
    :param begins: its state was deleted, so it reflects only records from that offset on
    """

    entry: Entry
    before: int | None
    now: int | None
    begins: bool = False


@dataclass
class _StoreHistory:
    """What happened to one store since kops last computed it whole.

    :param since: when kops did so, ISO-8601 UTC; empty: never
    """

    moves: dict[TopicPartition, list[_Move]] = field(default_factory=dict)
    carried: list[Entry] = field(default_factory=list)
    since: str = ""


@dataclass(frozen=True)
class OwnHistory:
    """What the journal shows about the stores of an application.

    :param written: changelog -> partition -> live keys that kops wrote there
    :param apart: stores whose changelogs reflect other offsets than the committed ones: kops moved the group, and nothing ran since
    :param findings: store -> where the journal contradicts what is computed
    :param computed: store -> when kops last wrote it whole, or when the snapshot that it starts from was taken, ISO-8601 UTC; empty: never
    :param made: offsets that kops moved the application to or from, by partition; None: it deleted the commit
    """

    written: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()
    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[TopicPartition, frozenset[int | None]] = field(default_factory=dict)


def read_past(
    services: Services,
    application: str,
    stores: Iterable[Store],
    committed: Mapping[TopicPartition, CommittedOffset],
    starts: Mapping[TopicPartition, int],
    *,
    since: str = "",
    until: str = "",
) -> OwnHistory:
    """Read what kops did to an application on this cluster.

    :param since: when the snapshot that the computation starts from was taken, ISO-8601 UTC: it includes what happened before
    :param until: when the snapshot that the result is compared with was taken, ISO-8601 UTC; empty: now
    :param committed: its committed offsets now
    :param starts: the first offsets of its input that may count
    """
    journal, cluster = Journal(services.directories.state / "journal"), services.kafka.cluster().cluster_id
    entries = [
        _JournalledChange.of(entry, application)
        for entry in journal.entries(lambda _damaged: None, mentioning=application)
        if entry.plan.cluster_id == cluster and not _did_nothing(entry) and (not until or entry.started <= until)
    ]
    entries.reverse()
    apart, findings, computed = set(), {}, {}
    for store in stores:
        found = _of_store((done for done in entries if done.entry.started >= since), store)
        computed[store.name] = max(since, found.since)
        reasons = [_carried(entry) for entry in found.carried]
        for at, moves in sorted(found.moves.items()):
            standing = committed[at].offset if at in committed else None
            for move in moves:
                if move.before is None and move.now is not None and move.now <= starts.get(at, 0):
                    continue  # where the application began, as the state file says too
                if move.begins:
                    if move.now is None or move.now > starts.get(at, 0):
                        reasons.append(_moved(at, move))
                elif move.now == standing and move is moves[-1]:
                    apart.add(store.name)
                else:
                    reasons.append(_moved(at, move))
        if reasons:
            findings[store.name] = reasons
    return OwnHistory(_written(entries), frozenset(apart), findings, computed, _made(entries))


def _did_nothing(entry: Entry) -> bool:
    return entry.status in _NOTHING_DONE or entry.undone_by == entry.id


def _of_store(entries: Iterable[_JournalledChange], store: Store) -> _StoreHistory:
    """Follow one store through the entries, oldest first."""
    found, topics = _StoreHistory(), {source.topic for source in store.inputs}
    for done in entries:
        entry, change, steps = done.entry, done.change, _only(topics, done.steps)
        if change is not None:
            if not done.lasts:
                continue
            if entry.plan.operation not in COMPUTED:
                if _is_carried(entry.plan, change, store):
                    found.carried.append(entry)
            elif store.name in change.stores:
                found = _StoreHistory(since=entry.started)
            else:
                _note(found, entry, steps)
            continue
        if entry.plan.operation == RESET:
            begun = {at: [_Move(entry, before, after, begins=True)] for at, (before, after) in steps.items()}
            found = _StoreHistory(begun, since=found.since) if steps else found
        else:
            _note(found, entry, steps)
    return found


def _note(found: _StoreHistory, entry: Entry, steps: Steps) -> None:
    """Record a move, merged with the previous one if the application has not continued between them."""
    for at, (before, after) in steps.items():
        moves = found.moves.setdefault(at, [])
        if moves and moves[-1].now == before and not moves[-1].begins:
            first = moves.pop()
            if first.before != after:
                moves.append(_Move(first.entry, first.before, after))
        else:
            moves.append(_Move(entry, before, after))
        if not moves:
            del found.moves[at]


def _only(topics: set[str], steps: Steps) -> Steps:
    return {at: step for at, step in steps.items() if at.topic in topics and step[0] != step[1]}


def _steps(plan: Plan, application: str) -> Steps:
    """Return the moves of the application's group in a plan of committed offsets."""
    groups: Iterable[GroupMoves] = ()
    if plan.operation == RESET:
        groups = ResetArguments.of_json(plan.arguments).offsets.groups
    elif plan.operation in _MOVES:
        groups = Moves.of_json(plan.arguments).groups
    elif plan.operation == DELETE_GROUPS:
        groups = Deletion.of_json(plan.arguments).prior
    found: dict[TopicPartition, tuple[int | None, int | None]] = {}
    for moves in groups:
        if moves.group == application:
            found |= _between(moves.writes(inverse=True), moves.writes())
    return found


def _made(entries: Iterable[_JournalledChange]) -> dict[TopicPartition, frozenset[int | None]]:
    """Return all offsets that kops ever moved the application to, or from, by partition: an undo moves it to the latter."""
    found: dict[TopicPartition, set[int | None]] = {}
    for done in entries:
        for at, (before, after) in done.steps.items():
            found.setdefault(at, set()).update({after} if before is None else {before, after})
    return {at: frozenset(offsets) for at, offsets in found.items()}


def _between(
    prior: Mapping[TopicPartition, CommittedOffset | None], write: Mapping[TopicPartition, CommittedOffset | None]
) -> dict[TopicPartition, tuple[int | None, int | None]]:
    return {at: (offset_of(prior.get(at)), offset_of(one)) for at, one in write.items()}


def _is_carried(plan: Plan, change: StateArguments, store: Store) -> bool:
    """Whether a store holds something that does not follow from its input as it is now."""
    if store.name not in change.stores:
        return False
    if plan.operation == RESTORE:
        origin = change.facts.get("taken_of", {})
        return bool(origin) and origin != {"cluster_id": plan.cluster_id, "application": change.application}
    grown = set(change.grow)
    replaced = {at.topic for at in change.commit} - set(change.repartitions) - grown
    inputs = {source.topic for source in store.inputs}
    return bool(inputs & replaced) or (bool(inputs & grown) and not store.moves)


def _carried(entry: Entry) -> Finding:
    when = f"by {entry.plan.operation} on {entry.started[:10]} (journal {entry.id})"
    said = f"its state was carried over {when}: it cannot be computed from the log start of its input"
    return doubt("carried_over", said, settled_by=ALL_KEYS, journal=entry.id)


def _moved(at: TopicPartition, move: _Move) -> Finding:
    before, now = ("no commit" if offset is None else f"offset {offset}" for offset in (move.before, move.now))
    which = f"{move.entry.plan.operation}, journal {move.entry.id}"
    when = f"from {before} to {now} on {move.entry.started[:10]} ({which}), and it continued from there"
    said = f"kops moved the application in {at} {when}: its state is not that of all records from the log start"
    return doubt("moved_by_kops", said, settled_by=ALL_KEYS, journal=move.entry.id)


def _written(entries: Iterable[_JournalledChange]) -> dict[str, dict[int, int]]:
    """Count the live keys that kops wrote. Those that it moved to other partitions later may be in any of these."""
    found: dict[str, dict[int, int]] = {}
    for done in entries:
        operation = done.entry.plan.operation
        if done.change is None or not done.lasts or operation not in (*COMPUTED, _REPARTITION):
            continue
        for store in done.change.stores.values():
            live = {number: content["records"] - content["tombstones"] for number, content in store.contents.items()}
            before = found.get(store.changelog, {})
            if operation in COMPUTED:
                found[store.changelog] = {number: before.get(number, 0) + live.get(number, 0) for number in {*before, *live}}
            elif before:
                found[store.changelog] = {number: min(count, sum(before.values())) for number, count in live.items()}
    return found
