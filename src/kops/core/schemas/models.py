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
_BY_NAME = {".avsc": AVRO, ".proto": PROTOBUF, ".avro": AVRO}


@dataclass(frozen=True)
class Reference:
    """A schema that another one needs.

    :param name: how it is named there: an Avro full name, a path of an import, a URI
    """

    name: str
    subject: str
    version: int

    def as_json(self) -> dict[str, Any]:
        """Return it as the registry's interface has it."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True)
class Schema:
    """A schema, not yet registered or read back.

    :param kind: AVRO, JSON or PROTOBUF
    """

    kind: str
    text: str
    references: tuple[Reference, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the body of a request."""
        body: dict[str, Any] = {"schema": self.text, "schemaType": self.kind}
        return body | ({"references": [each.as_json() for each in self.references]} if self.references else {})


@dataclass(frozen=True)
class SchemaVersion:
    """A version of a subject, as the registry has it."""

    subject: str
    version: int
    id: int
    schema: Schema


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema by its id, with the schemas that it refers to.

    :param referenced: name and text of each, those that others of them need first
    """

    id: int
    kind: str
    text: str
    referenced: tuple[tuple[str, str], ...] = ()


def references_of(body: Any) -> tuple[Reference, ...]:
    """Return the references in an answer of the registry."""
    return tuple(Reference(str(each["name"]), str(each["subject"]), int(each["version"])) for each in body or ())


def parse_reference(text: str) -> Reference:
    """Return what ``NAME=SUBJECT:VERSION`` means; a subject may have colons itself.

    :raises UsageProblem: when it is not written so
    """
    name, equals, place = text.partition("=")
    subject, colon, version = place.rpartition(":")
    if not (name and equals and subject and colon and version.isascii() and version.isdigit()):
        raise UsageProblem(
            f"{text!r} is not a valid reference", hint="write it as NAME=SUBJECT:VERSION, such as shop.Address=address-value:1"
        )
    return Reference(name, subject, int(version))


def kind_of(file: str, text: str, named: str | None) -> str:
    """Return which kind of schema a file has: as named, by its name, or by how it begins.

    :param named: a name of a format
    :raises UsageProblem: when it cannot be determined
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
