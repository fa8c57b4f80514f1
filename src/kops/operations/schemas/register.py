"""``kops schemas register``: adds a version to a subject unless it already has the schema; undo deletes it softly."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from kops.core.errors import KopsError, NotFound, Refused, StateMoved, VerificationFailed
from kops.core.json_values import read_json
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status
from kops.core.schemas.models import FORMAT_OF, PROTOBUF, Schema, SchemaVersion
from kops.gateways.registry.subjects import Subjects
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.schemas.subjects import CompatibilityResult, checked, parsed
from kops.operations.services import Services

REGISTER, UNREGISTER = "schemas.register", "schemas.unregister"
SubjectArgs = TypeVar("SubjectArgs", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Registration(Arguments):
    """The arguments of ``schemas.register``."""

    schema: Schema

    def as_json(self) -> Json:
        return {"schema": self.schema.as_json()}

    @classmethod
    def of_json(cls, body: Json) -> Registration:
        return cls(Schema.of_json(body["schema"]))


@dataclass(frozen=True, slots=True)
class VersionDeletion(Arguments):
    """The arguments of ``schemas.unregister``.

    :param schema: of the version, to register it again
    """

    version: int
    schema: Schema

    def as_json(self) -> Json:
        return {"version": self.version, "schema": self.schema.as_json()}

    @classmethod
    def of_json(cls, body: Json) -> VersionDeletion:
        return cls(body["version"], Schema.of_json(body["schema"]))


def plan_register(services: Services, subject: str, schema: Schema) -> Plan[Registration]:
    """Plan to register a schema: a new subject, a new version, or no change.

    :raises UsageProblem: when it cannot be parsed
    :raises Refused: when the compatibility level of the subject forbids it, naming the fields
    """
    subjects = Subjects(services.connection, services.permit)
    whole = parsed(subjects, schema)
    latest = subjects.newest(subject)
    there = subjects.find(subject, schema) if latest is not None else None
    warnings: list[str] = []
    if there is not None:
        what = f"version {there.version}, id {there.id}"
        item = Item(subject, "none", _state(there), _state(there), f"already there: {what}")
        summary = f"{subject} has this schema already: {what}"
    else:
        found = checked(subjects, subject, whole, schema)
        refuse_incompatible(found)
        action = "add a version" if latest is not None else "create"
        after = {"type": FORMAT_OF[schema.kind], "version": "new", "references": len(schema.references)}
        reason = f"compatible by {found.level}" if latest is not None else "a new subject"
        item = Item(subject, action, _state(latest), after, reason)
        summary = f"register {FORMAT_OF[schema.kind]} for {subject}"
        if latest is not None and found.level == "NONE":
            warnings.append(f"the level of {subject} is NONE: nothing says that readers understand the new version")
    return Plan(
        operation=REGISTER,
        summary=summary,
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(item,),
        guard={"registry": subjects.registry.shown_url, subject: _state(latest)},
        arguments=Registration(schema),
        warnings=tuple(warnings),
    )


def refuse_incompatible(found: CompatibilityResult) -> None:
    """Refuse what the registry would refuse, with the reason.

    :raises Refused: naming the first field
    """
    for verdict in found.verdicts:
        if not verdict.compatible:
            reasons = verdict.problems or verdict.messages or ("the registry gives no reason",)
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            raise Refused(
                f"{found.subject} is {found.level}, and this is not compatible with version {verdict.version.version}: {reasons[0]}{more}",
                hint="`kops schemas check` names all that breaks it",
                subject=found.subject,
                problems=list(reasons),
            )


class _OneSubject(Mutation[SubjectArgs]):
    """Changes one subject, after comparing its state in the registry with the plan."""

    def locks(self, plan: Plan[SubjectArgs]) -> Iterable[str]:
        return (f"schema {item.target}" for item in plan.changes)

    def check(self, services: Services, plan: Plan[SubjectArgs]) -> None:
        """Refuse if the subject was changed since the plan, or the registry is another one."""
        subject, subjects = plan.items[0].target, Subjects(services.connection, services.permit)
        state = _state(self.found(subjects, subject, plan))
        compare_guard(plan, {"registry": subjects.registry.shown_url, subject: state}, f"subject {subject}")

    @abstractmethod
    def found(self, subjects: Subjects, subject: str, plan: Plan[SubjectArgs]) -> SchemaVersion | None:
        """Return the current state of the version that the plan depends on."""

    def apply(self, services: Services, plan: Plan[SubjectArgs]) -> Iterator[ItemResult]:
        subjects = Subjects(services.connection, services.permit)
        for item in plan.changes:
            try:
                value = self.change(subjects, item.target, plan)
            except KopsError as error:
                yield failed(item, error)
            else:
                yield ItemResult(item.target, Status.DONE, value=value)

    @abstractmethod
    def change(self, subjects: Subjects, subject: str, plan: Plan[SubjectArgs]) -> dict[str, Any] | None:
        """Change a subject; return what the registry returned."""


class RegisterSchema(_OneSubject[Registration]):
    """Registers one schema, after comparing the subject's latest version."""

    name: ClassVar[str] = REGISTER
    arguments = Registration

    def found(self, subjects: Subjects, subject: str, plan: Plan[Registration]) -> SchemaVersion | None:  # noqa: ARG002 - the contract
        return subjects.newest(subject)

    def change(self, subjects: Subjects, subject: str, plan: Plan[Registration]) -> dict[str, Any] | None:
        return {"id": subjects.register(subject, plan.arguments.schema)}

    def verify(self, services: Services, plan: Plan[Registration], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read the schema back by its id, and find its version."""
        subjects = Subjects(services.connection, services.permit)
        return tuple(_read_back(subjects, plan, result) for result in results)

    def invert(self, services: Services, plan: Plan[Registration], results: Sequence[ItemResult]) -> Plan[VersionDeletion]:
        """Plan to delete the version softly; if its result is not known, the version is looked up in the registry.

        :raises Refused: when nothing was registered
        """
        subject, subjects = plan.items[0].target, Subjects(services.connection, services.permit)
        done = [result.value["version"] for result in results if result.status is Status.DONE and result.value]
        if not done and not any(result.status is Status.FAILED for result in results):
            done = [found.version for found in [_registered(subjects, plan)] if found is not None]
        if not done:
            raise Refused("nothing was registered, so there is nothing to undo")
        newest = subjects.newest(subject)
        later = newest is not None and newest.version > done[0]
        undo = plan_unregister(services, subject, done[0])
        return replace(undo, losses=(f"version {newest.version} of {subject} was registered since",) if newest and later else ())

    def resume(self, services: Services, plan: Plan[Registration]) -> Plan[Registration]:
        """Plan to register it, unless it is there."""
        return plan_register(services, plan.items[0].target, plan.arguments.schema)

    def messages(self, services: Services, plan: Plan[Registration], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        made = [f"{one.target}: version {one.value['version']}, id {one.value['id']}" for one in results if one.status is Status.DONE]
        return (*made, "undo deletes the version softly: its id stays readable, for records may have it") if made else ()


def plan_unregister(services: Services, subject: str, version: int) -> Plan[VersionDeletion]:
    """Plan to delete a version softly.

    :raises NotFound: when it does not exist
    """
    subjects = Subjects(services.connection, services.permit)
    found = subjects.version(subject, version)
    return Plan(
        operation=UNREGISTER,
        summary=f"delete version {version} of {subject} softly",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(Item(subject, "delete", _state(found), None, "softly: the id stays readable"),),
        severity=Severity.SEVERE,
        confirm=subject,
        guard={"registry": subjects.registry.shown_url, subject: _state(found)},
        arguments=VersionDeletion(version, found.schema),
        warnings=("records that were written with it stay readable; producers that register by themselves will register it again",),
    )


class UnregisterSchema(_OneSubject[VersionDeletion]):
    name: ClassVar[str] = UNREGISTER
    arguments = VersionDeletion

    def found(self, subjects: Subjects, subject: str, plan: Plan[VersionDeletion]) -> SchemaVersion | None:
        """Return the version to be deleted.

        :raises StateMoved: when it no longer exists
        """
        try:
            return subjects.version(subject, plan.arguments.version)
        except NotFound as missing:
            raise StateMoved(missing.message, hint="it was deleted meanwhile") from missing

    def change(self, subjects: Subjects, subject: str, plan: Plan[VersionDeletion]) -> dict[str, Any] | None:
        subjects.delete(subject, plan.arguments.version)
        return None

    def verify(self, services: Services, plan: Plan[VersionDeletion], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Check that the version no longer exists."""
        subjects, version = Subjects(services.connection, services.permit), plan.arguments.version

        def verified(result: ItemResult) -> ItemResult:
            if result.status is not Status.DONE or version not in subjects.versions(result.target):
                return result
            error = VerificationFailed(f"{result.target} still has version {version}", hint="does the registry allow deleting?")
            return ItemResult(result.target, Status.FAILED, error=error.as_json())

        return tuple(map(verified, results))

    def invert(self, services: Services, plan: Plan[VersionDeletion], results: Sequence[ItemResult]) -> Plan[Registration]:  # noqa: ARG002 - the contract
        """Plan to register it again: as a newer version, usually with the same id."""
        return plan_register(services, plan.items[0].target, plan.arguments.schema)

    def resume(self, services: Services, plan: Plan[VersionDeletion]) -> Plan[VersionDeletion]:
        """Plan to delete it, unless that is done."""
        subject, version = plan.items[0].target, plan.arguments.version
        if version in Subjects(services.connection, services.permit).versions(subject):
            return plan_unregister(services, subject, version)
        return replace(plan, items=(Item(subject, "none", reason="deleted already"),), summary=f"version {version} of {subject} is deleted")


REGISTERING, UNREGISTERING = RegisterSchema(), UnregisterSchema()


def _state(found: SchemaVersion | None) -> dict[str, Any] | None:
    return (
        None if found is None else {"version": found.version, "id": found.id, "type": FORMAT_OF.get(found.schema.kind, found.schema.kind)}
    )


def _registered(subjects: Subjects, plan: Plan[Registration]) -> SchemaVersion | None:
    """Return the version that a plan has registered: one with its schema that is newer than the latest version before."""
    subject = plan.items[0].target
    found, before = subjects.find(subject, plan.arguments.schema), plan.guard[subject]
    return found if found is not None and (before is None or found.version > before["version"]) else None


def _read_back(subjects: Subjects, plan: Plan[Registration], result: ItemResult) -> ItemResult:
    schema = plan.arguments.schema
    if result.status is Status.UNKNOWN:  # the response was lost: find out whether the request was, too
        made = _registered(subjects, plan)
        return result if made is None else ItemResult(result.target, Status.DONE, value={"id": made.id, "version": made.version})
    if result.status is not Status.DONE:
        return result
    number = result.value["id"]
    found, there = subjects.registry.schema(number), subjects.find(result.target, schema)
    if there is not None and there.id == number and _same(schema, found.text):
        return ItemResult(result.target, Status.DONE, value={"id": number, "version": there.version})
    error = VerificationFailed(f"the registry has another schema under the id {number} than was registered")
    return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=result.value)


def _same(schema: Schema, text: str) -> bool:
    """Whether a schema read back is the same: a registry may reformat JSON, and rewrite Protobuf completely."""
    return schema.kind == PROTOBUF or bool(read_json(schema.text) == read_json(text))
