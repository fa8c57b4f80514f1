"""Several changes in one plan: each part is carried out by its own mutation, in order, and undone in the opposite order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from kops.core.errors import Refused
from kops.core.findings import counted
from kops.core.plan import Arguments, ItemResult, Json, Plan, Severity, Status, plan_from_json
from kops.operations.protocol.mutation import FINAL, Mutation, refuse_other_cluster
from kops.operations.protocol.registry import mutation_named, typed
from kops.operations.protocol.settling import together
from kops.operations.services import Services

NAME = "cluster.apply"


class Part(NamedTuple):
    """A plan of one mutation, and what kind of thing it changes: with ``topic``, its target ``orders`` is ``topic orders`` in the whole."""

    kind: str
    plan: Plan[Any]

    def whole(self, target: str) -> str:
        return f"{self.kind} {target}"


@dataclass(frozen=True)
class Parts(Arguments):
    """The parts of a plan, in the order in which they are carried out."""

    parts: tuple[Part, ...]

    def as_json(self) -> Json:
        return [{"kind": part.kind, "plan": part.plan.as_json(whole=False)} for part in self.parts]

    @classmethod
    def of_json(cls, body: Json) -> Parts:
        return cls(tuple(Part(one["kind"], typed(plan_from_json(one["plan"]))) for one in body))


def compose(parts: Sequence[Part], summary: str, services: Services) -> Plan[Parts]:
    """Return the plan that carries out the parts that change something, and shows the others.

    :param summary: a sentence; what it changes is counted after it
    """
    changing = tuple(part for part in parts if part.plan.has_changes)
    severe = any(part.plan.severity is Severity.SEVERE for part in changing)
    items = tuple(replace(item, target=part.whole(item.target)) for part in parts for item in part.plan.items)
    changes = sum(item.changes for item in items)
    stuck = sum(item.differs and not item.changes for item in items)
    more = f", and {counted(stuck, 'difference')} that cannot be changed here" if stuck else ""
    return Plan(
        operation=NAME,
        summary=f"{summary}: {counted(changes, 'change') if changes else 'nothing to change'}{more}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(sorted(items, key=lambda item: (not item.changes, not item.differs))),
        severity=Severity.SEVERE if severe else Severity.MODERATE,
        confirm=services.connection.label if severe else "",
        arguments=Parts(changing),
        warnings=_sentences(part.plan.warnings for part in parts),
        notes=_sentences(part.plan.notes for part in parts),
    )


class Composed(Mutation[Parts]):
    name: ClassVar[str] = NAME
    arguments: ClassVar[type[Parts]] = Parts

    def locks(self, plan: Plan[Parts]) -> Iterable[str]:
        return list(dict.fromkeys(lock for part, mutation in _each(plan) for lock in mutation.locks(part.plan)))

    def check(self, services: Services, plan: Plan[Parts]) -> None:
        """Refuse when what any part was computed from has changed: nothing of the others is begun then."""
        for part, mutation in _each(plan):
            refuse_other_cluster(services, part.plan, mutation)
            mutation.check(services, part.plan)

    def apply(self, services: Services, plan: Plan[Parts]) -> Iterator[ItemResult]:
        """Carry out part after part; after one with an item that was not done, the rest is left alone."""
        stopped_by = ""
        for part, mutation in _each(plan):
            if stopped_by:
                error = {"code": "skipped", "message": f"left alone, since {stopped_by} failed"}
                yield from (ItemResult(part.whole(item.target), Status.SKIPPED, error=error) for item in part.plan.changes)
                continue
            for result in mutation.apply(services, part.plan):
                if result.status not in (Status.DONE, Status.UNCHANGED):
                    stopped_by = stopped_by or part.whole(result.target)
                yield result._replace(target=part.whole(result.target))

    def verify(self, services: Services, plan: Plan[Parts], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        with together(len(results)):
            return tuple(
                result._replace(target=part.whole(result.target))
                for part, mutation in _each(plan)
                if (own := _own(part, results))
                for result in mutation.verify(services, part.plan, own)
            )

    def can_be_undone(self, plan: Plan[Parts]) -> bool:
        return any(mutation.can_be_undone(part.plan) for part, mutation in _each(plan))

    def invert(self, services: Services, plan: Plan[Parts], results: Sequence[ItemResult]) -> Plan[Parts]:
        """Plan to undo the parts, the last one first; what cannot be undone is named.

        :raises Refused: when no part can be undone
        """
        undone, kept = [], []
        for part, mutation in reversed(list(_each(plan))):
            try:
                undone.append(Part(part.kind, mutation.invert(services, part.plan, _own(part, results))))
            except Refused as refused:
                kept.append(f"{part.kind}: {refused.message}")
        if not undone:
            raise Refused("; ".join(kept) or "there is nothing to undo")
        whole = compose(undone, "undo", services)
        losses = _sentences(part.plan.losses for part in undone)
        return replace(whole, losses=losses, warnings=(*(f"not undone: {one}" for one in kept), *whole.warnings))

    def resume(self, services: Services, plan: Plan[Parts]) -> Plan[Parts]:
        """Plan what is left of each part."""
        return compose([Part(part.kind, mutation.resume(services, part.plan)) for part, mutation in _each(plan)], "finish", services)

    def can_be_finished(self, plan: Plan[Parts]) -> bool:
        return all(mutation.can_be_finished(part.plan) for part, mutation in _each(plan))

    def messages(self, services: Services, plan: Plan[Parts], results: Sequence[ItemResult]) -> tuple[str, ...]:
        return _sentences(mutation.messages(services, part.plan, own) for part, mutation in _each(plan) if (own := _own(part, results)))


def _each(plan: Plan[Parts]) -> Iterator[tuple[Part, Mutation[Any]]]:
    return ((part, mutation_named(part.plan.operation)) for part in plan.arguments.parts)


def _own(part: Part, results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return the results of a part, by its own names for them."""
    own = {part.whole(item.target): item.target for item in part.plan.changes}
    return [result._replace(target=own[result.target]) for result in results if result.target in own]


def _sentences(of_parts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sentence for sentence in dict.fromkeys(chain.from_iterable(of_parts)) if sentence != FINAL)


COMPOSED = Composed()
