"""Schemas as a file of a folder: a document a subject, with its versions in order, and one of the registry's own level and mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from kops.config.yaml_files import placed_documents
from kops.core.errors import ConfigError, NotFound, Refused
from kops.core.findings import counted
from kops.core.plan import Plan
from kops.core.schemas.models import FORMAT_OF, KIND_OF, LEVELS, MODES, Reference, Schema
from kops.core.selection import names_owned
from kops.core.statefile.fields import Fields, known_fields, nearest, placed
from kops.gateways.registry.subjects import COMPATIBILITY, MODE, Subjects
from kops.operations.protocol.entries import Entries, Entry
from kops.operations.schemas.config import CHANGE_CONFIG, GLOBAL, entries, warnings_of
from kops.operations.schemas.delete import Versions, plan_delete, plan_registrations
from kops.operations.schemas.register import refuse_incompatible
from kops.operations.schemas.subjects import checked, each, parsed
from kops.operations.services import Services

FIELDS = ("subject", COMPATIBILITY, MODE, "versions")
VERSION_FIELDS = ("version", "type", "schema", "references")
WRITABLE = "READWRITE"
REFERENCE_FIELDS = ("name", "subject", "version")


class Declared(NamedTuple):
    """A subject as a file declares it, or the registry.

    :param settings: its own level and mode; what the file does not say is left out
    :param schemas: by the number of the version
    :param places: of the schemas, for messages
    """

    settings: dict[str, str]
    schemas: dict[int, Schema]
    places: dict[int, Fields]


Subject = str
"""A subject; empty: the registry itself."""


def export(services: Services) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the level and mode of the registry, and the subjects with their own ones and their live versions.

    The mode of a subject that equals the registry's is left out: some registries return the latter for every subject.
    """
    subjects = Subjects(services.connection, services.permit)
    known = (COMPATIBILITY, MODE) if subjects.has_modes else (COMPATIBILITY,)
    common = {what: value for what in known if (value := subjects.setting(what, None))}
    names = subjects.names()
    found = [one for one in each(lambda name: _read_subject(subjects, name, common), names) if one]
    strange = {one["subject"]: kind for one in found for kind in (each["type"] for each in one["versions"]) if kind not in KIND_OF}
    notes = [f"{name} left out: it has schemas of the type {kind}" for name, kind in strange.items()]
    return [*([common] if common else []), *(one for one in found if one["subject"] not in strange)], tuple(notes)


def _read_subject(subjects: Subjects, name: str, common: Mapping[str, str]) -> dict[str, Any] | None:
    """Return a subject as a document; None if it was deleted meanwhile."""
    versions = []
    for number in subjects.versions(name):
        with suppress(NotFound):
            versions.append(subjects.version(name, number))
    if not versions:
        return None
    own = {COMPATIBILITY: subjects.setting(COMPATIBILITY, name)}
    if MODE in common and (mode := subjects.setting(MODE, name)) != common[MODE]:
        own[MODE] = mode
    before = (0, *(one.version for one in versions))
    bodies = [
        {
            **({"version": one.version} if one.version != last + 1 else {}),
            "type": FORMAT_OF.get(one.schema.kind, one.schema.kind),
            "schema": one.schema.text,
            **({"references": [reference.as_json() for reference in one.schema.references]} if one.schema.references else {}),
        }
        for last, one in zip(before, versions, strict=False)
    ]
    return {"subject": name, **{what: value for what, value in own.items() if value}, "versions": bodies}


def plan(services: Services, file: str) -> Sequence[Plan[Any]]:
    """Plan to set levels, then to register what is missing, what others refer to first, then to set modes that forbid that.

    :raises ConfigError: for a schema that cannot be parsed, or refers to none
    :raises Refused: for one that is not compatible with those in the registry, or that the mode there forbids to register
    """
    subjects = Subjects(services.connection, services.permit)
    declared = _without_modes(subjects, _read(file))
    first = _plan_settings(services, declared, last=False)
    made = {name: _Made(subjects, name) for name, one in declared.items() if one.schemas}
    changing = {entry.key["subject"] for entry in first.arguments.wanted.values() if entry.key["what"] == COMPATIBILITY}
    plans: list[Plan[Any]] = [first]
    for name, numbers in runs({name: one.schemas for name, one in declared.items() if one.schemas}, file):
        places, own = declared[name].places, made[name]
        unchecked, left = 0, {}
        for number in numbers:
            schema, resolved = _here(subjects, declared[name].schemas[number], places[number], made)
            if resolved and own.has(number, schema):
                continue
            left[number] = schema
            checkable = resolved and bool(own.live) and not own.added and not changing & {name, None}
            if resolved:
                with placed(places[number], "schema"):
                    whole = parsed(subjects, schema)
                if checkable:
                    refuse_incompatible(checked(subjects, name, whole, schema))
            unchecked += not checkable and bool(own.live or own.added)  # anything is compatible with no version
            own.add(number)
        if left:
            _refuse_mode(subjects, name, declared)
        late = f"{counted(unchecked, 'schema')} of {name}: whether compatible, the registry says when it is registered"
        notes = [late] if unchecked else []
        notes += [f"version {one} of {name} has another number here: {own.numbers[one]}" for one in numbers if own.numbers[one] != one]
        there = [number for number in numbers if number not in left]
        plans.append(plan_registrations(services, name, left, there=there, notes=notes))
    return [*plans, _plan_settings(services, declared, last=True)]


@dataclass
class _Made:
    """A subject of the registry, and what a plan adds to it.

    :param numbers: number there by the number in the file
    """

    subjects: Subjects
    name: str
    numbers: dict[int, int] = field(default_factory=dict)
    added: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.live = self.subjects.versions(self.name)
        self._last = max(self.subjects.versions(self.name, deleted=True), default=0)

    def has(self, number: int, schema: Schema) -> bool:
        """Whether the registry has a schema; where there is no version it is not asked, since references may lead nowhere."""
        found = self.subjects.find(self.name, schema) if self.live else None
        if found is not None:
            self.numbers[number] = found.version
        return found is not None

    def add(self, number: int) -> None:
        """Note that a schema is registered next: registries count on from the last version, also if that was deleted softly."""
        self.added.append(number)
        self.numbers[number] = self._last + len(self.added)


def _here(subjects: Subjects, schema: Schema, place: Fields, made: Mapping[Subject, _Made]) -> tuple[Schema, bool]:
    """Return a schema with references to the numbers that versions have here, and whether all of these are registered.

    :raises ConfigError: for a reference to what is neither registered nor in the file
    """
    references, resolved = [], True
    for number, one in enumerate(schema.references):
        own = made.get(one.subject)
        if own is not None and one.version in own.numbers:
            references.append(replace(one, version=own.numbers[one.version]))
            resolved = resolved and one.version not in own.added
        elif one.version in (own.live if own is not None else subjects.versions(one.subject)):
            references.append(one)
        else:
            what = f"version {one.version} of {one.subject}"
            raise place.wrong(f"references[{number}]", f"leads nowhere: neither the registry nor the file has {what}")
    return replace(schema, references=tuple(references)), resolved


def _plan_settings(services: Services, declared: Mapping[Subject, Declared], *, last: bool) -> Plan[Entries]:
    """Plan to set levels and modes; modes in which no schema can be registered come last."""
    wanted: dict[str, Entry] = {}
    owners: dict[str, tuple[str | None, dict[str, str]]] = {}
    for name, one in declared.items():
        for what, value in one.settings.items():
            if (what == MODE and value != WRITABLE) is last:
                (target, entry), *_ = entries(name or None, {what: value}).items()
                wanted[target], owners[target] = entry, (name or None, {what: value})
    made = CHANGE_CONFIG.plan(services, wanted)
    warnings = [
        warning if subject is None else f"{subject}: {warning}"
        for item in made.changes
        for subject, setting in [owners[item.target]]
        for warning in warnings_of(subject, setting)
    ]
    return replace(made, warnings=tuple(warnings))


def _without_modes(subjects: Subjects, declared: Mapping[Subject, Declared]) -> Mapping[Subject, Declared]:
    """Return what is declared without modes where the registry has none.

    :raises ConfigError: when one is declared that is not how such a registry works
    """
    moded = {name or GLOBAL: one.settings[MODE] for name, one in declared.items() if MODE in one.settings}
    if not moded or subjects.has_modes:
        return declared
    if strict := [f"{name} is declared {mode}" for name, mode in moded.items() if mode != WRITABLE]:
        raise ConfigError(f"{strict[0]}, and the registry has no modes", hint=f"leave out its {MODE}")
    return {
        name: one._replace(settings={what: value for what, value in one.settings.items() if what != MODE}) for name, one in declared.items()
    }


def _refuse_mode(subjects: Subjects, name: Subject, declared: Mapping[Subject, Declared]) -> None:
    """Refuse to register in the mode that counts for a subject by then.

    :raises Refused: unless it is READWRITE
    """
    for subject in (name, ""):
        given = declared[subject].settings.get(MODE) if subject in declared else None
        mode = WRITABLE if given == WRITABLE or not subjects.has_modes else subjects.setting(MODE, subject or None)
        if mode is not None:
            break
    if mode not in (None, WRITABLE):
        what = f"{subject} is" if subject else "the registry is"
        raise Refused(
            f"{what} {mode}, so no schema of {name} can be registered",
            hint=f"declare {MODE}: READWRITE, or `kops schemas config {subject or '--global'} --mode READWRITE`",
        )


def runs(schemas: Mapping[Subject, Mapping[int, Schema]], file: str) -> Iterator[tuple[Subject, list[int]]]:
    """Return the versions of subjects so that each comes after those that it refers to, those of a subject together where possible.

    Subjects may refer to each other: a later version of one to another, of which an earlier version refers to the first.

    :raises ConfigError: when versions refer to each other
    """
    left = {name: sorted(some) for name, some in schemas.items()}

    def free(name: Subject, number: int) -> bool:
        return all(
            one.version not in left.get(one.subject, ()) or (one.subject == name and one.version < number)
            for one in schemas[name][number].references
        )

    while any(left.values()):
        stuck = True
        for name, numbers in left.items():
            if run := list(takewhile(partial(free, name), numbers)):
                stuck, left[name] = False, numbers[len(run) :]
                yield name, run
        if stuck:
            names = ", ".join(f"{name} version {numbers[0]}" for name, numbers in left.items() if numbers)
            raise ConfigError(
                f"{file}: versions refer to each other: {names}", hint="a registry takes a version after those that it refers to"
            )


def prune(services: Services, owns: Sequence[str], file: str) -> Sequence[Plan[Versions]]:
    """Plan to delete subjects softly that globs match and the file does not declare: what refers to others goes first."""
    subjects = Subjects(services.connection, services.permit)
    doomed = sorted(names_owned(owns, subjects.names()) - _read(file).keys())
    plans = {name: plan_delete(services, name, together=True) for name in doomed}
    order = list(runs({name: one.arguments.schemas for name, one in plans.items()}, file))
    whole = [name for name, numbers in order if len(numbers) == len(plans[name].arguments.schemas)]
    return [
        plans[name] if name in whole else replace(plan_delete(services, name, numbers, together=True), notes=())
        for name, numbers in reversed(order)
    ]


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
        fields.refuse_second("subject" if name else "", name or GLOBAL, {one or GLOBAL for one in declared})
        settings = {what: fields.one_of(what, known, "") for what, known in ((COMPATIBILITY, LEVELS), (MODE, MODES))}
        if not name and (not any(settings.values()) or "versions" in fields.body):
            raise fields.wrong(
                "subject", "is missing", f"without one, a document has {COMPATIBILITY} and {MODE} alone: those of the registry"
            )
        schemas: dict[int, Schema] = {}
        places: dict[int, Fields] = {}
        last = 0
        for index, one in enumerate(fields.sequence("versions", "a list of schemas")):
            version = known_fields(place, f"versions[{index}]", one, VERSION_FIELDS, "a version")
            number = _number(version) if "version" in version.body else last + 1
            if number <= last:
                raise version.wrong("version", f"is {number}", f"the one before it is {last}")
            schemas[number], places[number], last = _schema(version), version, number
        declared[name] = Declared({what: value for what, value in settings.items() if value}, schemas, places)
    return declared


def _schema(fields: Fields) -> Schema:
    kind = fields.exact("type", f"one of {', '.join(KIND_OF)}")
    if kind not in KIND_OF:
        raise fields.wrong("type", f"is {kind}", f"{nearest(kind, KIND_OF)}one of {', '.join(KIND_OF)}")
    references = []
    for number, one in enumerate(fields.sequence("references", "a list")):
        given = known_fields(fields.file, f"{fields.path('references')}[{number}]", one, REFERENCE_FIELDS, "a reference")
        references.append(Reference(given.exact("name"), given.exact("subject"), _number(given)))
    return Schema(KIND_OF[kind], fields.exact("schema", "its text"), tuple(references))


def _number(fields: Fields) -> int:
    version = fields.exact("version")
    if not (version.isascii() and version.isdecimal() and 0 < int(version) < 2**31):
        raise fields.wrong("version", f"is {version}", "the number of a version")
    return int(version)
