"""Schemas in the registry: listing, showing and checking them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from kops.core.errors import KopsError, NotFound, OperationFailed, UsageProblem, answer_or_error, without_errors
from kops.core.json_values import read_json, write_json
from kops.core.schemas.avro_compatibility import Names, Problem, incompatibilities
from kops.core.schemas.models import AVRO, FORMAT_OF, JSON, LATEST, PROTOBUF, RegisteredSchema, Schema, SchemaVersion
from kops.core.selection import names_matching
from kops.gateways.registry.subjects import Subjects
from kops.operations.services import Services

AT_A_TIME = 8
"""How many requests run concurrently when many subjects are read."""
T = TypeVar("T")


@dataclass(frozen=True)
class Verdict:
    """Whether a schema is compatible with a version.

    :param messages: those of the registry
    :param problems: what kops finds, by field, if the registry gives no messages
    """

    version: SchemaVersion
    compatible: bool
    messages: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompatibilityResult:
    """The result of a compatibility check.

    :param level: of the subject
    :param own: whether the level is set for the subject itself rather than for the registry
    """

    subject: str
    level: str
    own: bool
    verdicts: tuple[Verdict, ...]

    @property
    def compatible(self) -> bool:
        return all(verdict.compatible for verdict in self.verdicts)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per version that the schema was checked against."""
        return [
            {
                "subject": self.subject,
                "version": verdict.version.version,
                "id": verdict.version.id,
                "level": self.level,
                "compatible": verdict.compatible,
                "problems": list(verdict.problems),
                "messages": list(verdict.messages),
            }
            for verdict in self.verdicts
        ]


def list_rows(services: Services, patterns: Sequence[str], problems: dict[str, KopsError]) -> list[dict[str, Any]]:
    """Return the subjects that names and globs match, with their latest version.

    :param problems: receives why a subject is not known, by its name
    :raises NotFound: for a plain name that does not exist
    """
    subjects = Subjects(services.connection, services.permit)
    names = names_matching(patterns, subjects.names(), what="subject")

    def row(name: str) -> dict[str, Any]:
        latest = subjects.newest(name)
        level, own = subjects.level(name)
        return {
            "subject": name,
            "version": latest.version if latest else None,
            "id": latest.id if latest else None,
            "type": FORMAT_OF.get(latest.schema.kind, latest.schema.kind.lower()) if latest else None,
            "compatibility": level,
            "compatibility_own": own,
            "references": len(latest.schema.references) if latest else 0,
        }

    answers = each(lambda name: answer_or_error(lambda: row(name)), names)
    return list(without_errors(dict(zip(names, answers, strict=True)), problems).values())


def show(services: Services, subject: str | None, *, version: int | None = None, schema_id: int | None = None) -> dict[str, Any]:
    """Return one schema completely: by version of a subject, or by id.

    :raises NotFound: when it does not exist
    """
    subjects = Subjects(services.connection, services.permit)
    if schema_id is not None:
        found = subjects.registry.schema(schema_id)
        users = [{"subject": name, "version": number} for name, number in subjects.subjects_of(schema_id)]
        referenced = [{"name": name} for name, _ in found.referenced]
        return _body(None, None, schema_id, found.kind, found.text) | {"references": referenced, "subjects": users}
    if subject is None:
        raise UsageProblem("neither a subject nor an id is named", hint="kops schemas show SUBJECT, or --id N")
    try:
        one = subjects.version(subject, version if version is not None else LATEST)
    except NotFound as missing:
        if subject.isdecimal():
            raise NotFound(
                missing.message, hint=f"{subject} as the id of a schema: kops schemas show --id {subject}", **missing.details
            ) from None
        raise
    level, own = subjects.level(subject)
    body = _body(subject, one.version, one.id, one.schema.kind, one.schema.text)
    references = [each.as_json() for each in one.schema.references]
    return body | {
        "references": references,
        "versions": subjects.versions(subject),
        "compatibility": level,
        "compatibility_own": own,
    }


def check(services: Services, subject: str, schema: Schema, *, against: str | None = None) -> CompatibilityResult:
    """Compare a schema with versions of a subject, by the compatibility level of the subject.

    :param against: a version, ``latest`` or ``all``; None: those that the level requires
    :raises UsageProblem: when the schema cannot be parsed
    """
    subjects = Subjects(services.connection, services.permit)
    whole = parsed(subjects, schema)
    return checked(subjects, subject, whole, schema, against=against)


def checked(
    subjects: Subjects, subject: str, whole: RegisteredSchema, schema: Schema, *, against: str | None = None
) -> CompatibilityResult:
    """Do the same as :func:`check`, for a schema that was parsed before."""
    level, own = subjects.level(subject)
    wanted = list(_versions(subjects, subject, level, against))
    verdicts = each(lambda number: _verdict(subjects, whole, schema, subjects.version(subject, number), level), wanted)
    return CompatibilityResult(subject, level, own, tuple(verdicts))


def parsed(subjects: Subjects, schema: Schema) -> RegisteredSchema:
    """Return a schema with its references, after checking that it can be parsed.

    :raises UsageProblem: when it cannot be parsed
    """
    from kops.formats.confluent import checked as parse

    whole = subjects.whole(schema)
    try:
        parse(whole)
    except OperationFailed as wrong:
        raise UsageProblem(wrong.message, hint="fix the schema, or pass --type or --reference; nothing was registered") from wrong
    return whole


def _versions(subjects: Subjects, subject: str, level: str, against: str | None) -> Iterator[int]:
    versions = subjects.versions(subject)
    if against not in (None, LATEST, "all"):
        if not (against or "").isdigit() or int(against or 0) not in versions:
            raise NotFound(f"subject {subject} has no version {against}", hint=f"it has: {', '.join(map(str, versions)) or 'none'}")
        yield int(against or 0)
    elif against == "all" or (against is None and level.endswith("_TRANSITIVE")):
        yield from versions
    else:
        yield from versions[-1:]


def _verdict(subjects: Subjects, whole: RegisteredSchema, schema: Schema, version: SchemaVersion, level: str) -> Verdict:
    if schema.kind != version.schema.kind and level != "NONE":  # some registries cannot compare different types at all
        kinds = FORMAT_OF[schema.kind], FORMAT_OF.get(version.schema.kind, version.schema.kind)
        return Verdict(version, False, problems=(f"it is {kinds[0]}, and the version is {kinds[1]}",))
    compatible, messages = subjects.compatible(version.subject, schema, version.version)
    problems = () if compatible or messages else tuple(_explained(subjects, whole, version, level))
    return Verdict(version, compatible, tuple(messages), problems)


def _explained(subjects: Subjects, new: RegisteredSchema, old: SchemaVersion, level: str) -> Iterator[str]:
    """Yield the fields that are incompatible: for Avro in the direction of the level, for other types what differs."""
    before = subjects.registry.schema(old.id)
    if new.kind == AVRO:
        yield from _explained_avro(new, before, f"version {old.version}", level)
    elif new.kind == PROTOBUF:
        from kops.formats.protobuf import ProtobufSchema
        from kops.formats.schema_differences import protobuf_differences

        yield from protobuf_differences(*(ProtobufSchema(each.text, each.referenced) for each in (before, new)))
    elif new.kind == JSON:
        from kops.formats.schema_differences import json_schema_differences

        yield from json_schema_differences(read_json(before.text), read_json(new.text))


def _explained_avro(new: RegisteredSchema, before: RegisteredSchema, version: str, level: str) -> Iterator[str]:
    try:
        one, other = (Names(each.text, [text for _, text in each.referenced]) for each in (new, before))
    except (ValueError, KeyError, TypeError):
        return
    for word, reader, writer, whose in (("BACKWARD", one, other, "the new schema"), ("FORWARD", other, one, version)):
        if word in level or level.startswith("FULL"):
            yield from (f"{problem} (read with {whose})" for problem in _found(reader, writer))


def _found(reader: Names, writer: Names) -> Iterable[Problem]:
    try:
        return incompatibilities(reader, writer)
    except (KeyError, TypeError):  # not Avro according to the specification; only the registry accepts it
        return []


def _body(subject: str | None, version: int | None, schema_id: int, kind: str, text: str) -> dict[str, Any]:
    return {"subject": subject, "version": version, "id": schema_id, "type": FORMAT_OF.get(kind, kind.lower()), "schema": text}


def pretty(kind: str, text: str) -> str:
    """Format the text of a schema for people: JSON indented, Protobuf as it is."""
    if kind == "protobuf":
        return text.strip()
    try:
        return write_json(read_json(text), indent=2)
    except ValueError:
        return text


def each(function: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
    """Return what a function of requests returns for each item, ``AT_A_TIME`` at once."""
    if len(items) <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(AT_A_TIME, "kops-schemas") as pool:
        return list(pool.map(function, items))
