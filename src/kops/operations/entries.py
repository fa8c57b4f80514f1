"""Tables of entries that the cluster keeps by key, such as ACLs: one mutation that adds, replaces and removes entries.

A subclass reads and writes the table; compare-and-set, read-back, undo and finish are the same for all.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

from kops.core.errors import KopsError, VerificationFailed
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.services import Services

SETTLE_SECONDS = 10.0
"""Brokers answer from their own copy of the metadata, which follows the controllers'."""
POLL_SECONDS = 0.05
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Entries(Arguments):
    """What the entries are to be.

    :param after: the value of each entry by its key; None: there is to be none
    """

    after: Mapping[str, Json]

    def as_json(self) -> Json:
        return {"after": dict(self.after)}

    @classmethod
    def of_json(cls, body: Json) -> Entries:
        return cls(dict(body["after"]))


class ChangeEntries(Mutation[Entries]):
    """Set entries of a table, each by its key. ``plan.guard`` has the values before."""

    arguments = Entries
    what: ClassVar[str]
    """The entries in a sentence: ``ACLs``."""

    def locks(self, plan: Plan[Entries]) -> Iterable[str]:  # noqa: ARG002 - of the whole table
        return [self.name]

    @abstractmethod
    def read(self, services: Services, keys: Iterable[str]) -> dict[str, Json]:
        """Return the present value of each key; None: there is no such entry."""

    @abstractmethod
    def write(self, services: Services, before: Mapping[str, Json], after: Mapping[str, Json]) -> Mapping[str, KopsError]:
        """Set some entries, at most ``AT_ONCE``; return the errors by key.

        :raises KopsError: when the whole request failed
        """

    def item(self, key: str, before: Json, after: Json) -> Item:
        """Return an entry as an item of a plan."""
        if before == after:
            return Item(key, "none", before, after, "already so" if after is not None else "there is none")
        return Item(key, "remove" if after is None else "add" if before is None else "set", before, after)

    def plan(self, services: Services, after: Mapping[str, Json], summary: str, **more: Any) -> Plan[Entries]:
        """Plan to set entries; for ``more`` see ``Plan``."""
        before = self.read(services, after)
        changing = {key: value for key, value in after.items() if before[key] != value}
        return Plan(
            operation=self.name,
            summary=summary if changing else f"the {self.what} are already so",
            cluster_id=services.kafka.cluster().cluster_id,
            context=services.connection.name or ",".join(services.connection.bootstrap_servers),
            items=tuple(self.item(key, before[key], value) for key, value in after.items()),
            guard={key: before[key] for key in changing},
            arguments=Entries(changing),
            **more,
        )

    def check(self, services: Services, plan: Plan[Entries]) -> None:
        compare_guard(plan, self.read(services, plan.guard), f"the {self.what}")

    def apply(self, services: Services, plan: Plan[Entries]) -> Iterator[ItemResult]:
        changes = iter(plan.changes)
        while some := {item.target: item for item in islice(changes, AT_ONCE)}:
            after = {key: plan.arguments.after[key] for key in some}
            problems = self.write(services, {key: plan.guard[key] for key in some}, after)
            for key, item in some.items():
                yield failed(item, problems[key]) if key in problems else ItemResult(key, Status.DONE)

    def verify(self, services: Services, plan: Plan[Entries], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        after = {one.target: plan.arguments.after[one.target] for one in results if one.status is Status.DONE}
        deadline = time.monotonic() + SETTLE_SECONDS
        while (now := self.read(services, after)) != after and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return tuple(_verified(one, now[one.target], after[one.target]) if one.target in after else one for one in results)

    def invert(self, services: Services, plan: Plan[Entries], results: Sequence[ItemResult]) -> Plan[Entries]:
        keys = [one.target for one in results if one.status is Status.DONE] or list(plan.guard)
        now = self.read(services, keys)
        others = [key for key in keys if now[key] not in (plan.arguments.after[key], plan.guard[key])]
        losses = tuple(f"{key} was changed since" for key in others)
        back = self.plan(services, {key: plan.guard[key] for key in keys}, f"restore the {self.what} from before: {plan.summary}")
        return replace(
            back, losses=losses, severity=plan.severity if plan.severity is Severity.SEVERE else back.severity, confirm=plan.confirm
        )

    def resume(self, services: Services, plan: Plan[Entries]) -> Plan[Entries]:
        """Plan the entries that are not yet as planned.

        :raises StateMoved: when an entry is neither as before nor as planned
        """
        now = self.read(services, plan.guard)
        expected = {key: value if value == plan.arguments.after[key] else plan.guard[key] for key, value in now.items()}
        compare_guard(replace(plan, guard=expected), now, f"the {self.what}")
        return self.plan(services, plan.arguments.after, plan.summary)


def _verified(result: ItemResult, now: Json, wanted: Json) -> ItemResult:
    if now == wanted:
        return result
    error = VerificationFailed(f"{result.target} reads back otherwise", hint="list them again: another operator may have changed it")
    return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=now)
