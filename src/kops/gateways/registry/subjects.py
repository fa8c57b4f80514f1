"""Subjects of a registry: their versions, their compatibility levels, registering and deleting."""

from __future__ import annotations

from typing import Any

from kops.config.connection import Connection
from kops.config.http import path_segment
from kops.core.errors import NotFound, UsageProblem
from kops.core.permit import ALWAYS, Permit
from kops.core.schemas.models import LATEST, RegisteredSchema, Schema, SchemaVersion, references_of
from kops.gateways.http import Shape
from kops.gateways.registry.client import SCHEMA, SchemaRegistry, subject_path

_PLACE: Shape = {"subject": str, "version": int}
_FOUND: Shape = {**_PLACE, "id": int, **{("schema?" if key == "schema" else key): each for key, each in SCHEMA.items()}}
_VERSION: Shape = {**_PLACE, **SCHEMA, "id": int}
_VERDICT: Shape = {"is_compatible": bool, "messages?": [str]}
_LEVEL: Shape = {"compatibilityLevel?": str, "compatibility?": str}


class Subjects:
    """The subjects of the registry of a connection.

    :raises ConfigError: when the connection has no registry
    """

    def __init__(self, connection: Connection, permit: Permit = ALWAYS) -> None:
        self._permit = permit
        self.registry = SchemaRegistry(connection)

    def names(self) -> list[str]:
        return sorted(self.registry.ask("GET", "/subjects", "the list of subjects", shape=[str]))

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, without deleted ones; empty if it does not exist."""
        try:
            found = self.registry.ask("GET", f"{subject_path(subject)}/versions", f"subject {subject}", shape=[int])
        except NotFound:
            return []
        return sorted(found)

    def version(self, subject: str, version: int | str = LATEST) -> SchemaVersion:
        """Return a version of a subject.

        :raises NotFound: when there is none
        """
        what = f"subject {subject}" if version == LATEST else f"version {version} of subject {subject}"
        return _version(self.registry.ask("GET", f"{subject_path(subject)}/versions/{version}", what, shape=_VERSION))

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

    def subjects_of(self, schema_id: int) -> list[tuple[str, int]]:
        found = self.registry.ask("GET", f"/schemas/ids/{schema_id}/versions", f"schema {schema_id}", shape=[_PLACE])
        return sorted((each["subject"], each["version"]) for each in found)

    def level(self, subject: str) -> tuple[str, bool]:
        """Return the compatibility level of a subject, and whether it is its own rather than the registry's."""
        for path, own in ((f"/config/{path_segment(subject, 'subject')}", True), ("/config", False)):
            try:
                body = self.registry.ask("GET", path, f"compatibility level of {subject}", shape=_LEVEL)
            except NotFound:
                continue
            return body.get("compatibilityLevel") or body.get("compatibility") or "NONE", own
        return "NONE", False

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

    def delete(self, subject: str, version: int) -> None:
        """Soft-delete a version: the schema remains readable by its id."""
        self._permit.require("the deletion of a version")
        self.registry.ask("DELETE", f"{subject_path(subject)}/versions/{version}", f"version {version} of subject {subject}")

    def whole(self, schema: Schema) -> RegisteredSchema:
        """Return a schema with the texts of its references, as formats need it; its id is 0.

        :raises UsageProblem: when a reference does not exist
        """
        try:
            referenced = self.registry.referenced([each.as_json() for each in schema.references])
        except NotFound as missing:
            raise UsageProblem(f"a reference leads nowhere: {missing.message}", hint="register what is referred to first") from missing
        return RegisteredSchema(0, schema.kind, schema.text, referenced)


def _version(body: Any) -> SchemaVersion:
    schema = Schema(body.get("schemaType") or "AVRO", body["schema"], references_of(body.get("references")))
    return SchemaVersion(body["subject"], body["version"], body["id"], schema)
