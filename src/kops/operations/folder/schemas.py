"""Schemas as a file of a folder: a document a subject, with its versions in order, and one of the registry's own level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

from kops.config.yaml_files import placed_documents
from kops.core.errors import ConfigError, NotFound
from kops.core.findings import counted
from kops.core.plan import Plan
from kops.core.schemas.models import FORMAT_OF, KIND_OF, LEVELS, Reference, Schema
from kops.core.selection import names_owned
from kops.core.statefile.fields import Fields, known_fields, nearest, placed
from kops.gateways.registry.subjects import COMPATIBILITY, Subjects
from kops.operations.protocol.entries import Entries, Entry
from kops.operations.schemas.config import CHANGE_CONFIG, GLOBAL, entries, warnings_of
from kops.operations.schemas.delete import Versions, plan_delete, plan_registrations, unregistered
from kops.operations.schemas.register import refuse_incompatible
from kops.operations.schemas.subjects import checked, each, parsed
from kops.operations.services import Services

FIELDS = ("subject", "compatibility", "versions")
VERSION_FIELDS = ("type", "schema", "references")
REFERENCE_FIELDS = ("name", "subject", "version")


class Declared(NamedTuple):
    """A subject as a file declares it, or the registry.

    :param level: its own; None: the file does not say
    :param schemas: by their place in the file, from 1 on
    :param places: of the schemas, for messages
    """

    level: str | None
    schemas: dict[int, Schema]
    places: dict[int, Fields]


Subject = str
"""A subject; empty: the registry itself."""


def export(services: Services) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the level of the registry, and the subjects with their own levels and live versions; without modes."""
    subjects = Subjects(services.connection, services.permit)
    names = subjects.names()
    found = {name: one for name, one in zip(names, each(lambda name: _read_subject(subjects, name), names), strict=True) if one}
    common = subjects.setting(COMPATIBILITY, None)
    documents = [{COMPATIBILITY: common}] if common else []
    documents += [document for document, _ in found.values()]
    renumbered = {name for name, (_, numbers) in found.items() if numbers != list(range(1, len(numbers) + 1))}
    notes = [
        f"{name} refers to version {one['version']} of {one['subject']}, which gets another number where the file is applied to an empty"
        " registry: versions before it were deleted"
        for name, (document, _) in found.items()
        for version in document["versions"]
        for one in version.get("references", ())
        if one["subject"] in renumbered
    ]
    strange = {name: one["type"] for name, (document, _) in found.items() for one in document["versions"] if one["type"] not in KIND_OF}
    notes += [f"{name} left out: it has schemas of the type {kind}" for name, kind in strange.items()]
    return [document for document in documents if document.get("subject") not in strange], tuple(dict.fromkeys(notes))


def _read_subject(subjects: Subjects, name: str) -> tuple[dict[str, Any], list[int]] | None:
    """Return a subject as a document, and the numbers of its versions; None if it was deleted meanwhile."""
    versions = []
    for number in subjects.versions(name):
        with suppress(NotFound):
            versions.append(subjects.version(name, number))
    if not versions:
        return None
    own = subjects.setting(COMPATIBILITY, name)
    bodies = [
        {
            "type": FORMAT_OF.get(one.schema.kind, one.schema.kind),
            "schema": one.schema.text,
            **({"references": [reference.as_json() for reference in one.schema.references]} if one.schema.references else {}),
        }
        for one in versions
    ]
    return {"subject": name, **({COMPATIBILITY: own} if own else {}), "versions": bodies}, [one.version for one in versions]


def plan(services: Services, file: str) -> Sequence[Plan[Any]]:
    """Plan to set levels, then to register what is missing: what others refer to comes first.

    :raises ConfigError: for a schema that cannot be parsed, or refers to none
    :raises Refused: for one that is not compatible with those in the registry
    """
    subjects, declared = Subjects(services.connection, services.permit), _read(file)
    levels = _plan_levels(services, declared)
    changing = {entry.key["subject"] for entry in levels.arguments.wanted.values()}
    plans: list[Plan[Any]] = [levels]
    for name in _in_order({name: one.schemas.values() for name, one in declared.items() if one.schemas}, file):
        one = declared[name]
        resolved = {number: _resolves(subjects, schema, one.places[number], declared) for number, schema in one.schemas.items()}
        known = {number: schema for number, schema in one.schemas.items() if resolved[number]}
        left = unregistered(subjects, name, known) | {number: schema for number, schema in one.schemas.items() if not resolved[number]}
        exists, changes = subjects.newest(name) is not None, bool(changing & {name, None})
        unchecked = len(left)
        for number in sorted(left):
            if resolved[number]:
                with placed(one.places[number], "schema"):
                    whole = parsed(subjects, left[number])
                if exists and not changes and number == min(left):
                    refuse_incompatible(checked(subjects, name, whole, left[number]))
                    unchecked -= 1
        unchecked -= bool(left) and not exists  # anything is compatible with no version
        notes = (f"{counted(unchecked, 'schema')} of {name}: whether compatible, the registry says when it is registered",)
        there = [number for number in one.schemas if number not in left]
        plans.append(plan_registrations(services, name, dict(sorted(left.items())), there=there, notes=notes if unchecked else ()))
    return plans


def _plan_levels(services: Services, declared: Mapping[Subject, Declared]) -> Plan[Entries]:
    wanted: dict[str, Entry] = {}
    owners: dict[str, tuple[str | None, str]] = {}
    for name, one in declared.items():
        if one.level is not None:
            for target, entry in entries(name or None, {COMPATIBILITY: one.level}).items():
                wanted[target], owners[target] = entry, (name or None, one.level)
    made = CHANGE_CONFIG.plan(services, wanted)
    warnings = [
        warning if subject is None else f"{subject}: {warning}"
        for item in made.changes
        for subject, level in [owners[item.target]]
        for warning in warnings_of(subject, {COMPATIBILITY: level})
    ]
    return replace(made, warnings=tuple(warnings))


def _resolves(subjects: Subjects, schema: Schema, place: Fields, declared: Mapping[Subject, Declared]) -> bool:
    """Whether all that a schema refers to is registered.

    :raises ConfigError: when it is neither registered nor in the file
    """
    for number, reference in enumerate(schema.references):
        if reference.version in subjects.versions(reference.subject):
            continue
        if reference.subject not in declared:
            what = f"version {reference.version} of {reference.subject}"
            raise place.wrong(f"references[{number}]", f"leads nowhere: neither the registry nor the file has {what}")
        return False
    return True


def _in_order(schemas: Mapping[Subject, Iterable[Schema]], file: str) -> list[Subject]:
    """Return subjects, each after those that it refers to.

    :raises ConfigError: when there is no such order
    """
    needs = {
        name: dict.fromkeys(one.subject for schema in some for one in schema.references if one.subject in schemas and one.subject != name)
        for name, some in schemas.items()
    }
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError as circle:
        names = " -> ".join(circle.args[1])
        raise ConfigError(f"{file}: subjects refer to each other: {names}", hint="register these with `kops schemas register`") from circle


def prune(services: Services, owns: Sequence[str], file: str) -> Sequence[Plan[Versions]]:
    """Plan to delete subjects softly that globs match and the file does not declare: what refers to others goes first."""
    subjects = Subjects(services.connection, services.permit)
    doomed = sorted(names_owned(owns, subjects.names()) - _read(file).keys())
    plans = {name: plan_delete(services, name, together=True) for name in doomed}
    order = _in_order({name: one.arguments.schemas.values() for name, one in plans.items()}, file)
    return [plans[name] for name in reversed(order)]


def _read(file: str) -> dict[Subject, Declared]:
    return parse_documents(placed_documents(Path(file), needed="subject", missing_ok=True))


def parse_documents(found: Iterable[tuple[str, Any]]) -> dict[Subject, Declared]:
    """Read subjects, one a document; that without a subject is the registry.

    :param found: place (for messages) and YAML of each document, whose scalars are the texts as written
    :raises ConfigError: naming the document and the field
    """
    declared: dict[Subject, Declared] = {}
    for place, body in found:
        fields = known_fields(place, "", body, FIELDS, "a subject")
        name = fields.exact("subject") if "subject" in fields.body else ""
        if name in declared:
            raise fields.wrong("subject" if name else "", f"{name or GLOBAL} is declared twice")
        level = fields.one_of(COMPATIBILITY, LEVELS, "") or None
        if not name and (level is None or "versions" in fields.body):
            raise fields.wrong("subject", "is missing", f"without one, a document has {COMPATIBILITY} alone: that of the registry")
        schemas, places = {}, {}
        for number, one in enumerate(fields.sequence("versions", "a list of schemas"), 1):
            places[number] = known_fields(place, f"versions[{number - 1}]", one, VERSION_FIELDS, "a version")
            schemas[number] = _schema(places[number])
        declared[name] = Declared(level, schemas, places)
    return declared


def _schema(fields: Fields) -> Schema:
    kind = fields.exact("type", f"one of {', '.join(KIND_OF)}")
    if kind not in KIND_OF:
        raise fields.wrong("type", f"is {kind}", f"{nearest(kind, KIND_OF)}one of {', '.join(KIND_OF)}")
    references = []
    for number, one in enumerate(fields.sequence("references", "a list")):
        given = known_fields(fields.file, f"{fields.path('references')}[{number}]", one, REFERENCE_FIELDS, "a reference")
        version = given.exact("version")
        if not (version.isascii() and version.isdecimal()):
            raise given.wrong("version", f"is {version}", "the number of a version")
        references.append(Reference(given.exact("name"), given.exact("subject"), int(version)))
    return Schema(KIND_OF[kind], fields.exact("schema", "its text"), tuple(references))
