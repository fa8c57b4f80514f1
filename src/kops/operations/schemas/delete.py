"""``kops schemas delete``: deletes versions softly or for good; undo of a soft deletion registers them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kops.core.errors import KopsError, NotFound, Refused, VerificationFailed
from kops.core.findings import counted
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status, not_done
from kops.core.schemas.models import FORMAT_OF, Schema, SchemaVersion
from kops.gateways.registry.subjects import Subjects
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.services import Services

DELETE, RESTORE = "schemas.delete", "schemas.restore"


@dataclass(frozen=True, slots=True)
class Versions(Arguments):
    """Versions of a subject.

    :param schemas: by the number of the version, to register them again
    :param hard: delete them for good
    """

    subject: str
    schemas: Mapping[int, Schema]
    hard: bool = False

    def as_json(self) -> Json:
        return {"subject": self.subject, "hard": self.hard, "schemas": {str(number): one.as_json() for number, one in self.schemas.items()}}

    @classmethod
    def of_json(cls, body: Json) -> Versions:
        return cls(body["subject"], {int(number): Schema.of_json(one) for number, one in body["schemas"].items()}, body["hard"])


def plan_delete(
    services: Services, subject: str, numbers: Sequence[int] = (), *, hard: bool = False, together: bool = False
) -> Plan[Versions]:
    """Plan to delete versions of a subject.

    :param numbers: empty: all
    :param hard: for good, those too that were deleted softly before
    :param together: with other subjects, so that what refers to a version now may be gone by then; a version is never deleted before that
    :raises NotFound: for a version that does not exist
    :raises Refused: for one that another schema refers to
    """
    subjects = Subjects(services.connection, services.permit)
    live = subjects.versions(subject)
    possible = subjects.versions(subject, deleted=True) if hard else live
    missing = [number for number in numbers if number not in possible]
    if not possible or missing:
        what = f"version {missing[0]} of subject {subject}" if possible else f"subject {subject}"
        raise NotFound(
            f"the registry has no {what}", hint=f"it has: {', '.join(map(str, possible))}" if possible else "see `kops schemas list`"
        )
    chosen = sorted(set(numbers)) or possible
    found = {number: subjects.version(subject, number, deleted=hard) for number in chosen}
    for number in chosen if not together else ():
        _refuse_referred(subjects, subject, number, hard=hard)
    left = [number for number in live if number not in chosen]
    many = f"version {chosen[0]}" if len(chosen) == 1 else f"{len(chosen)} versions"
    return Plan(
        operation=DELETE,
        summary=f"delete {many} of {subject} {'for good' if hard else 'softly'}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(
            Item(_target(subject, number), "delete", _state(one), None, _reason(number in live, hard=hard)) for number, one in found.items()
        ),
        severity=Severity.SEVERE,
        confirm=subject,
        guard=_guard(subjects, subject, found),
        arguments=Versions(subject, {number: one.schema for number, one in found.items()}, hard),
        warnings=tuple(_warnings(subjects, found, hard=hard)),
        notes=(_next_check(subjects, subject, left),),
    )


def _refuse_referred(subjects: Subjects, subject: str, number: int, *, hard: bool) -> None:
    """Refuse what a schema refers to: softly deleted ones count only if this is for good, since their ids stay readable."""
    ids = subjects.referenced_by(subject, number)
    if ids := ids if hard else [each for each in ids if _is_live(subjects, each)]:
        raise Refused(
            f"version {number} of {subject} is referred to by schema{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}",
            hint=f"see who that is: kops schemas show --id {ids[0]}",
        )


def _is_live(subjects: Subjects, schema_id: int) -> bool:
    try:
        users = subjects.subjects_of(schema_id)
    except NotFound:
        return False
    return any(number in subjects.versions(name) for name, number in users)


def _warnings(subjects: Subjects, found: Mapping[int, SchemaVersion], *, hard: bool) -> Iterator[str]:
    if not hard:
        yield "records that were written with it stay readable; producers that register by themselves will register it again"
        return
    for number, one in found.items():
        others = [place for place in subjects.subjects_of(one.id, deleted=True) if place not in ((one.subject, each) for each in found)]
        if others:
            yield f"id {one.id} of version {number} stays readable: {others[0][0]} version {others[0][1]} has it too"
        else:
            yield f"records that were written with version {number} cannot be read after this: no other subject has id {one.id}"


def _next_check(subjects: Subjects, subject: str, left: Sequence[int]) -> str:
    level, own = subjects.level(subject)
    if left:
        return f"the level is {level}: the next schema is compared with version {left[-1]}" if level != "NONE" else "the level is NONE"
    also = f"; its own level, {level}, may go with its last version, and no undo sets it again" if own else ""
    return f"no version is left, so any schema is compatible next{also}"


def _guard(subjects: Subjects, subject: str, versions: Mapping[int, SchemaVersion]) -> dict[str, Any]:
    ids = {str(number): one.id for number, one in versions.items()}
    return {"registry": subjects.registry.shown_url, "subject": subject, "ids": ids, "live": subjects.versions(subject)}


class _OfVersions(Mutation[Versions]):
    arguments: ClassVar[type[Versions]] = Versions

    def locks(self, plan: Plan[Versions]) -> Iterable[str]:
        return (f"schema {plan.arguments.subject}",)

    def check(self, services: Services, plan: Plan[Versions]) -> None:
        """Refuse if the subject was changed since the plan, or the registry is another one."""
        subjects, subject = Subjects(services.connection, services.permit), plan.arguments.subject
        found = {}
        for number in map(int, plan.guard["ids"]):
            try:
                found[number] = subjects.version(subject, number, deleted=plan.arguments.hard)
            except NotFound:
                continue
        compare_guard(plan, _guard(subjects, subject, found), f"subject {subject}")

    def apply(self, services: Services, plan: Plan[Versions]) -> Iterator[ItemResult]:
        subjects = Subjects(services.connection, services.permit)
        for item, (number, schema) in zip(plan.changes, plan.arguments.schemas.items(), strict=True):
            try:
                value = self.change(subjects, plan.arguments, number, schema)
            except KopsError as error:
                yield failed(item, error)
            else:
                yield ItemResult(item.target, Status.DONE, value=value)

    def change(self, subjects: Subjects, given: Versions, number: int, schema: Schema) -> Json:
        raise NotImplementedError


class DeleteVersions(_OfVersions):
    name: ClassVar[str] = DELETE

    def can_be_undone(self, plan: Plan[Versions]) -> bool:
        return not plan.arguments.hard

    def change(self, subjects: Subjects, given: Versions, number: int, schema: Schema) -> Json:  # noqa: ARG002 - the contract
        if number in subjects.versions(given.subject):
            _refuse_referred(subjects, given.subject, number, hard=given.hard)  # again: it may have been registered since the plan
            subjects.delete(given.subject, number)
        if given.hard:
            subjects.delete(given.subject, number, hard=True)

    def verify(self, services: Services, plan: Plan[Versions], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Check that the versions no longer exist."""
        given = plan.arguments
        there = Subjects(services.connection, services.permit).versions(given.subject, deleted=given.hard)
        left = {_target(given.subject, number) for number in there}

        def verified(result: ItemResult) -> ItemResult:
            if result.status is Status.UNKNOWN and result.target not in left:
                return ItemResult(result.target, Status.DONE)
            if result.status is not Status.DONE or result.target not in left:
                return result
            error = VerificationFailed(f"the registry still has {result.target}", hint="does the registry allow deleting?")
            return ItemResult(result.target, Status.FAILED, error=error.as_json())

        return tuple(map(verified, results))

    def invert(self, services: Services, plan: Plan[Versions], results: Sequence[ItemResult]) -> Plan[Versions]:
        """Plan to register the versions again, the oldest first.

        :raises Refused: when they were deleted for good, or are there
        """
        given, untouched = plan.arguments, not_done(results)
        if given.hard:
            raise Refused(
                "the versions were deleted for good", hint=f"register them from files: kops schemas register {given.subject} FILE"
            )
        gone = {number: one for number, one in given.schemas.items() if _target(given.subject, number) not in untouched}
        return plan_restore(services, given.subject, gone)

    def resume(self, services: Services, plan: Plan[Versions]) -> Plan[Versions]:
        """Plan to delete those that are still there."""
        given = plan.arguments
        there = Subjects(services.connection, services.permit).versions(given.subject, deleted=given.hard)
        left = [number for number in given.schemas if number in there]
        return plan_delete(services, given.subject, left, hard=given.hard) if left else _nothing(plan, "deleted already")


def plan_restore(services: Services, subject: str, schemas: Mapping[int, Schema]) -> Plan[Versions]:
    """Plan to register deleted versions again: each as a newer version, usually with the same id.

    :raises Refused: when all of them are registered
    """
    subjects = Subjects(services.connection, services.permit)
    left = unregistered(subjects, subject, schemas)
    if not left:
        raise Refused(f"{subject} has these schemas, so there is nothing to undo")
    return plan_registrations(services, subject, left, notes=("versions get new numbers; ids usually stay",))


def unregistered(subjects: Subjects, subject: str, schemas: Mapping[int, Schema]) -> dict[int, Schema]:
    """Return the schemas that a subject does not have, in order; one without versions is not asked, since references may lead nowhere."""
    live = subjects.versions(subject)
    return {number: one for number, one in sorted(schemas.items()) if not live or subjects.find(subject, one) is None}


def plan_registrations(
    services: Services, subject: str, left: Mapping[int, Schema], *, there: Iterable[int] = (), notes: Sequence[str] = ()
) -> Plan[Versions]:
    """Plan to register schemas of a subject one after another.

    :param left: by numbers in their order, by which they are named
    :param there: numbers of schemas that it has, to be shown as such
    """
    subjects = Subjects(services.connection, services.permit)
    many = counted(len(left), "schema")
    return Plan(
        operation=RESTORE,
        summary=f"register {many} of {subject}" if left else f"{subject} has every schema",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(
            *(Item(_target(subject, number), "register", None, _shape(one), "as a newer version") for number, one in left.items()),
            *(Item(_target(subject, number), "none", reason="registered already") for number in there),
        ),
        guard=_guard(subjects, subject, {}),
        arguments=Versions(subject, left),
        notes=tuple(notes),
    )


class RestoreVersions(_OfVersions):
    name: ClassVar[str] = RESTORE

    def change(self, subjects: Subjects, given: Versions, number: int, schema: Schema) -> Json:  # noqa: ARG002 - the contract
        return {"id": subjects.register(given.subject, schema)}

    def verify(self, services: Services, plan: Plan[Versions], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Find the version of each schema."""
        subjects, given = Subjects(services.connection, services.permit), plan.arguments
        schemas = {_target(given.subject, number): one for number, one in given.schemas.items()}

        def verified(result: ItemResult) -> ItemResult:
            found = None if result.status is Status.FAILED else subjects.find(given.subject, schemas[result.target])
            if found is not None:
                return ItemResult(result.target, Status.DONE, value={"id": found.id, "version": found.version})
            if result.status is not Status.DONE:
                return result
            error = VerificationFailed(f"{given.subject} does not have the schema of {result.target}")
            return ItemResult(result.target, Status.FAILED, error=error.as_json())

        return tuple(map(verified, results))

    def invert(self, services: Services, plan: Plan[Versions], results: Sequence[ItemResult]) -> Plan[Versions]:
        """Plan to delete softly what was registered.

        :raises Refused: when nothing was registered
        """
        subjects, given, untouched = Subjects(services.connection, services.permit), plan.arguments, not_done(results)
        ours = [one for number, one in given.schemas.items() if _target(given.subject, number) not in untouched]
        made = [found.version for one in ours if (found := subjects.find(given.subject, one)) is not None]
        if not made:
            raise Refused("nothing was registered, so there is nothing to undo")
        return plan_delete(services, given.subject, made, together=True)

    def resume(self, services: Services, plan: Plan[Versions]) -> Plan[Versions]:
        """Plan to register those that are not there."""
        try:
            return plan_restore(services, plan.arguments.subject, plan.arguments.schemas)
        except Refused:
            return _nothing(plan, "registered already")


DELETING, RESTORING = DeleteVersions(), RestoreVersions()


def _nothing(plan: Plan[Versions], why: str) -> Plan[Versions]:
    from dataclasses import replace

    return replace(plan, items=tuple(Item(item.target, "none", reason=why) for item in plan.items), summary=f"{plan.summary}: {why}")


def _target(subject: str, number: int) -> str:
    return f"{subject} version {number}"


def _shape(schema: Schema) -> Json:
    return {"type": FORMAT_OF.get(schema.kind, schema.kind), "references": len(schema.references)}


def _state(found: SchemaVersion) -> Json:
    return {"id": found.id, **_shape(found.schema)}


def _reason(live: bool, *, hard: bool) -> str:
    if not hard:
        return "softly: the id stays readable"
    return "for good" if live else "for good: it was deleted softly before"
