"""Subjects of a registry: their versions, their compatibility levels, registering and deleting."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kops.config.connection import Connection
from kops.config.http import path_segment
from kops.core.errors import NotFound, OperationFailed, UsageProblem
from kops.core.permit import ALWAYS, Permit
from kops.core.schemas.models import LATEST, RegisteredSchema, Schema, SchemaVersion, references_of
from kops.gateways.http import Shape
from kops.gateways.registry.client import SCHEMA, SchemaRegistry, subject_path

_PLACE: Shape = {"subject": str, "version": int}
_FOUND: Shape = {**_PLACE, "id": int, **{("schema?" if key == "schema" else key): each for key, each in SCHEMA.items()}}
_VERSION: Shape = {**_PLACE, **SCHEMA, "id": int}
_VERDICT: Shape = {"is_compatible": bool, "messages?": [str]}
COMPATIBILITY, MODE = "compatibility", "mode"
_SETTINGS: dict[str, tuple[str, Shape]] = {
    COMPATIBILITY: ("/config", {"compatibilityLevel?": str, "compatibility?": str}),
    MODE: ("/mode", {"mode": str}),
}


class Subjects:
    """The subjects of the registry of a connection.

    :raises ConfigError: when the connection has no registry
    """

    def __init__(self, connection: Connection, permit: Permit = ALWAYS) -> None:
        self._permit = permit
        self.registry = SchemaRegistry(connection)

    def names(self) -> list[str]:
        return sorted(self.registry.ask("GET", "/subjects", "the list of subjects", shape=[str]))

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the versions of a subject; empty if it does not exist.

        :param deleted: with those that were deleted softly
        """
        try:
            found = self.registry.ask("GET", f"{subject_path(subject)}/versions{_with(deleted)}", f"subject {subject}", shape=[int])
        except NotFound:
            return []
        return sorted(found)

    def version(self, subject: str, version: int | str = LATEST, *, deleted: bool = False) -> SchemaVersion:
        """Return a version of a subject.

        :raises NotFound: when there is none
        """
        what = f"subject {subject}" if version == LATEST else f"version {version} of subject {subject}"
        path = f"{subject_path(subject)}/versions/{version}{_with(deleted)}"
        return _version(self.registry.ask("GET", path, what, shape=_VERSION))

    def newest(self, subject: str) -> SchemaVersion | None:
        try:
            return self.version(subject)
        except NotFound:
            return None

    def find(self, subject: str, schema: Schema) -> SchemaVersion | None:
        """Return the version of a subject that has this schema; None if there is none.

        :raises UsageProblem: when it is not a schema
        """
        try:
            body = self.registry.ask("POST", subject_path(subject), f"subject {subject}", schema.as_json(), shape=_FOUND)
        except NotFound:
            return None
        return _version({**body, "schema": body.get("schema") or schema.text})

    def referenced_by(self, subject: str, version: int) -> list[int]:
        """Return the ids of the schemas that refer to a version."""
        path = f"{subject_path(subject)}/versions/{version}/referencedby"
        found: list[int] = self.registry.ask("GET", path, f"what refers to version {version} of subject {subject}", shape=[int])
        return found

    def subjects_of(self, schema_id: int, *, deleted: bool = False) -> list[tuple[str, int]]:
        found = self.registry.ask("GET", f"/schemas/ids/{schema_id}/versions{_with(deleted)}", f"schema {schema_id}", shape=[_PLACE])
        return sorted((each["subject"], each["version"]) for each in found)

    def level(self, subject: str) -> tuple[str, bool]:
        """Return the compatibility level of a subject, and whether it is its own rather than the registry's."""
        own = self.setting(COMPATIBILITY, subject)
        return (own, True) if own is not None else (self._common_level, False)

    def setting(self, what: str, subject: str | None) -> str | None:
        """Return the own level or mode of a subject, or of the registry; None if it has none of its own.

        Some registries answer for a subject without one with the registry's: from them, an own one that is equal counts as none.

        :param what: COMPATIBILITY or MODE
        """
        found = self._setting(what, subject)
        inherited = subject is not None and what == COMPATIBILITY and found == self._common_level and not self.has_modes
        return None if inherited else found

    def _setting(self, what: str, subject: str | None) -> str | None:
        path, shape = _SETTINGS[what]
        name = f"{path}/{path_segment(subject, 'subject')}" if subject is not None else path
        try:
            body = self.registry.ask("GET", name, f"{what} of {subject or 'the registry'}", shape=shape)
        except NotFound:
            return None
        return next((str(body[key]) for key in ("compatibilityLevel", "compatibility", "mode") if body.get(key)), None)

    @cached_property
    def _common_level(self) -> str:
        return self._setting(COMPATIBILITY, None) or "NONE"

    @cached_property
    def has_modes(self) -> bool:
        """Whether the registry has modes: Apicurio, which also answers for a subject without a level with its own, has none."""
        try:
            return self._setting(MODE, None) is not None
        except OperationFailed:
            return False

    def change(self, what: str, subject: str | None, value: str | None) -> None:
        """Set or remove the level or mode of a subject, or set that of the registry.

        :param value: None removes
        """
        self._permit.require(what)
        path = _SETTINGS[what][0] + (f"/{path_segment(subject, 'subject')}" if subject is not None else "")
        body = None if value is None else {what: value}
        self.registry.ask("PUT" if body else "DELETE", path, f"{what} of {subject or 'the registry'}", body)
        self.__dict__.pop("_common_level", None)

    def compatible(self, subject: str, schema: Schema, version: int | str) -> tuple[bool, list[str]]:
        """Return whether a schema is compatible with a version at the level of the subject, and the registry's objections.

        :raises UsageProblem: when it is not a schema
        """
        path = f"/compatibility{subject_path(subject)}/versions/{version}?verbose=true"
        body = self.registry.ask("POST", path, f"the check of {subject}", schema.as_json(), shape=_VERDICT)
        return body["is_compatible"], body.get("messages") or []

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema and return its id. Registering it again changes nothing.

        :raises IncompatibleSchema: when the subject's level forbids it
        """
        self._permit.require("a schema")
        path = f"{subject_path(subject)}/versions"
        return int(self.registry.ask("POST", path, f"the schema for {subject}", schema.as_json(), shape={"id": int})["id"])

    def delete(self, subject: str, version: int, *, hard: bool = False) -> None:
        """Delete a version softly, so that the schema remains readable by its id.

        :param hard: for good; it must have been deleted softly before
        """
        self._permit.require("the deletion of a version")
        path = f"{subject_path(subject)}/versions/{version}{'?permanent=true' if hard else ''}"
        self.registry.ask("DELETE", path, f"version {version} of subject {subject}")

    def whole(self, schema: Schema) -> RegisteredSchema:
        """Return a schema with the texts of its references, as formats need it; its id is 0.

        :raises UsageProblem: when a reference does not exist
        """
        try:
            referenced = self.registry.referenced([each.as_json() for each in schema.references])
        except NotFound as missing:
            raise UsageProblem(f"a reference leads nowhere: {missing.message}", hint="register what is referred to first") from missing
        return RegisteredSchema(0, schema.kind, schema.text, referenced)


def _with(deleted: bool) -> str:
    return "?deleted=true" if deleted else ""


def _version(body: Any) -> SchemaVersion:
    schema = Schema(body.get("schemaType") or "AVRO", body["schema"], references_of(body.get("references")))
    return SchemaVersion(body["subject"], body["version"], body["id"], schema)
