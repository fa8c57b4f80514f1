"""Schemas of a registry: kinds, references, versions of a subject. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from kops.core.errors import UsageProblem

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
FORMAT_OF: Mapping[str, str] = MappingProxyType({AVRO: "avro", JSON: "json-schema", PROTOBUF: "protobuf"})
"""Names of formats by the registry's ``schemaType``."""
KIND_OF: Mapping[str, str] = MappingProxyType({name: kind for kind, name in FORMAT_OF.items()})
LATEST = "latest"
LEVELS = ("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")
_BY_NAME = {".avsc": AVRO, ".proto": PROTOBUF, ".avro": AVRO}


@dataclass(frozen=True)
class Reference:
    """A schema that another one needs.

    :param name: how the other schema names it: an Avro full name, a path of an import, a URI
    """

    name: str
    subject: str
    version: int

    def as_json(self) -> dict[str, Any]:
        """Return it as in the registry's REST API."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True)
class Schema:
    """A schema, either read from the registry or yet to be registered.

    :param kind: AVRO, JSON or PROTOBUF
    """

    kind: str
    text: str
    references: tuple[Reference, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the body of a request to the registry."""
        body: dict[str, Any] = {"schema": self.text, "schemaType": self.kind}
        return body | ({"references": [each.as_json() for each in self.references]} if self.references else {})

    @classmethod
    def of_json(cls, body: Mapping[str, Any]) -> Schema:
        return cls(body["schemaType"], body["schema"], references_of(body.get("references")))


@dataclass(frozen=True)
class SchemaVersion:
    """A version of a subject, as the registry returns it."""

    subject: str
    version: int
    id: int
    schema: Schema


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema by its id, with the schemas that it references.

    :param referenced: name and text of each, dependencies first
    """

    id: int
    kind: str
    text: str
    referenced: tuple[tuple[str, str], ...] = ()


def references_of(body: Any) -> tuple[Reference, ...]:
    return tuple(Reference(str(each["name"]), str(each["subject"]), int(each["version"])) for each in body or ())


def parse_reference(text: str) -> Reference:
    """Parse ``NAME=SUBJECT:VERSION``; a subject may contain colons itself.

    :raises UsageProblem: if it does not have this form
    """
    name, equals, place = text.partition("=")
    subject, colon, version = place.rpartition(":")
    if not (name and equals and subject and colon and version.isascii() and version.isdigit()):
        raise UsageProblem(
            f"{text!r} is not a valid reference", hint="write it as NAME=SUBJECT:VERSION, such as shop.Address=address-value:1"
        )
    return Reference(name, subject, int(version))


def kind_of(file: str, text: str, named: str | None) -> str:
    """Determine the kind of schema in a file: by ``named``, by the file's suffix, or by its content.

    :param named: name of a format, if given
    :raises UsageProblem: if it cannot be determined
    """
    if named:
        return KIND_OF[named]
    if by_name := _BY_NAME.get(PurePath(file).suffix.lower()):
        return by_name
    begins = text.lstrip()
    if begins.startswith(("syntax", "edition", "//", "/*", "message ", "import ", "package ")):
        return PROTOBUF
    if '"$schema"' in text or '"properties"' in text:
        return JSON
    if any(f'"{word}"' in text for word in ("record", "enum", "fixed")):
        return AVRO
    raise UsageProblem(f"{file} does not tell what kind of schema it has", hint=f"name it: --type {' | '.join(KIND_OF)}")
