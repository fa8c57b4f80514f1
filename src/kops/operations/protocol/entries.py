"""Tables of entries whose values are set and removed, such as quotas: planned, compared, read back and undone alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

from kops.core.errors import KopsError, NothingToUndo, StateMoved, VerificationFailed
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status, not_done
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.protocol.settling import as_read_back, settled
from kops.operations.services import Services

AT_ONCE = 500
"""Entries of one request: what is done is known before the next."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value to be set.

    :param key: what identifies the entry in requests
    :param value: None removes it
    """

    key: Json
    value: Json


@dataclass(frozen=True, slots=True)
class Entries(Arguments):
    """The entries that a plan changes, by target."""

    wanted: Mapping[str, Entry]

    def as_json(self) -> Json:
        return {"entries": {target: {"key": one.key, "value": one.value} for target, one in self.wanted.items()}}

    @classmethod
    def of_json(cls, body: Json) -> Entries:
        return cls({target: Entry(one["key"], one["value"]) for target, one in body["entries"].items()})


class EntriesMutation(Mutation[Entries]):
    """Sets and removes values."""

    arguments: ClassVar[type[Entries]] = Entries
    what: ClassVar[str]
    """One entry, for messages: ``quota``."""

    @abstractmethod
    def read(self, services: Services, keys: Mapping[str, Json]) -> dict[str, Json]:
        """Return the current value of each entry by its target; None if it has none."""

    @abstractmethod
    def write(self, services: Services, entries: Mapping[str, Entry]) -> Mapping[str, KopsError | None]:
        """Set and remove values; return the error of each target."""

    def place(self, services: Services) -> Json:  # noqa: ARG002 - the contract for tables outside the cluster
        """Return where the table is, if that is not the cluster: plans for another place are refused."""
        return None

    def read_back(self, services: Services, wanted: Mapping[str, Entry]) -> dict[str, Json]:
        """Return the value of each target after the change."""
        return self._now(services, wanted)

    def plan(
        self, services: Services, wanted: Mapping[str, Entry], *, warnings: Sequence[str] = (), notes: Sequence[str] = ()
    ) -> Plan[Entries]:
        """Plan to set and remove values; those that are there already are left alone."""
        now = self.read(services, {target: one.key for target, one in wanted.items()})
        items = [_item(target, now[target], one.value) for target, one in wanted.items()]
        changing = {item.target: wanted[item.target] for item in items if item.changes}
        actions = sorted({item.action for item in items if item.changes})
        subject = next(iter(changing)) if len(changing) == 1 else f"{len(changing)} entries"
        return Plan(
            operation=self.name,
            summary=f"{' and '.join(actions)} {subject}" if changing else f"every {self.what} is as requested already",
            cluster_id=self.cluster_id(services),
            context=services.connection.label,
            items=tuple(items),
            guard={"place": self.place(services), "entries": {target: now[target] for target in changing}},
            arguments=Entries(changing),
            warnings=tuple(warnings),
            notes=tuple(notes),
        )

    def locks(self, plan: Plan[Entries]) -> Iterable[str]:
        return [f"{self.what} {item.target}" for item in plan.changes]

    def check(self, services: Services, plan: Plan[Entries]) -> None:
        actual = {"place": self.place(services), "entries": self._now(services, plan.arguments.wanted)}
        compare_guard(plan, actual, f"what the plan changes ({self.what})")

    def apply(self, services: Services, plan: Plan[Entries]) -> Iterator[ItemResult]:
        items, left = {item.target: item for item in plan.changes}, iter(plan.arguments.wanted.items())
        while some := dict(islice(left, AT_ONCE)):
            for target, error in self.write(services, some).items():
                yield ItemResult(target, Status.DONE) if error is None else failed(items[target], error)

    def verify(self, services: Services, plan: Plan[Entries], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        wanted = plan.arguments.wanted

        def read() -> tuple[ItemResult, ...]:
            now = self.read_back(services, wanted)
            return tuple(_read_back(one, now[one.target], wanted[one.target].value) for one in results)

        return settled(read, services.kafka.heard_by_all if plan.guard["place"] is None else None)

    def invert(self, services: Services, plan: Plan[Entries], results: Sequence[ItemResult]) -> Plan[Entries]:
        """Plan to set the values that were there before, and to remove those that were not.

        :raises Refused: when there is nothing to undo
        """
        untouched = not_done(results)
        ours = {target: one for target, one in plan.arguments.wanted.items() if target not in untouched}
        before = plan.guard["entries"]
        now = self._now(services, ours)
        undo = self.plan(services, {target: Entry(one.key, before[target]) for target, one in ours.items()})
        if not undo.has_changes:
            raise NothingToUndo(f"every {self.what} is as it was before, so there is nothing to undo")
        strayed = [target for target, one in ours.items() if now[target] not in (one.value, before[target])]
        return replace(undo, losses=tuple(f"{target} was changed since: it is {_text(now[target])}" for target in strayed))

    def resume(self, services: Services, plan: Plan[Entries]) -> Plan[Entries]:
        """Plan what is left.

        :raises StateMoved: when a value is neither the planned nor the previous one
        """
        now, wanted = self._now(services, plan.arguments.wanted), plan.arguments.wanted
        moved = [target for target, one in wanted.items() if now[target] not in (one.value, plan.guard["entries"][target])]
        if moved:
            raise StateMoved(f"changed since: {', '.join(moved)}", hint="run the command again to plan from what is there now")
        return self.plan(services, wanted)

    def _now(self, services: Services, entries: Mapping[str, Entry]) -> dict[str, Json]:
        return self.read(services, {target: one.key for target, one in entries.items()})


def _item(target: str, now: Json, wanted: Json) -> Item:
    if now == wanted:
        return Item(target, "none", now, wanted, "not set" if wanted is None else "already set")
    return Item(target, "remove" if wanted is None else "set", now, wanted)


def _read_back(result: ItemResult, now: Any, wanted: Any) -> ItemResult:
    error = VerificationFailed(f"{result.target} is {_text(now)}, not {_text(wanted)}")
    return as_read_back(result, now, wanted, error, now)


def _text(value: Json) -> str:
    return "not set" if value is None else str(value)
