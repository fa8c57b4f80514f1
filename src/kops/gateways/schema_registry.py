"""Schemas by id, from a registry with Confluent's API (Confluent, Apicurio, Karapace, Redpanda)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from kops.config.connection import Connection
from kops.config.http import http_settings
from kops.core.errors import AuthenticationFailed, AuthorizationFailed, ConfigError, NotFound, OperationFailed, TimedOut, Unreachable
from kops.formats.confluent import RegisteredSchema

ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_MOST_REFERENCES = 1000
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _OK = 401, 403, 404, 200


class SchemaRegistry:
    """The registry of a connection. A schema never changes under its id, so each is asked for once.

    :raises ConfigError: when the connection has no registry
    """

    def __init__(self, connection: Connection) -> None:
        if not connection.registry_url:
            raise ConfigError(
                "there is no schema registry for this cluster",
                hint="set registry_url in the context: kops context add NAME --registry-url URL ...; or name another format",
            )
        import requests

        self._url = connection.registry_url.rstrip("/")
        self._settings = http_settings(connection, "registry")
        self._session = requests.Session()
        self._session.headers["Accept"] = ACCEPT
        self._schemas: dict[int, RegisteredSchema] = {}

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return a schema with all that it refers to.

        :raises NotFound: when the registry has none of that id
        :raises Unreachable: when the registry does not answer
        """
        if schema_id not in self._schemas:
            body = self._get(f"/schemas/ids/{schema_id}", f"schema {schema_id}")
            found: dict[tuple[str, str], str] = {}
            self._collect(body.get("references") or [], found)
            self._schemas[schema_id] = RegisteredSchema(
                schema_id, str(body.get("schemaType") or "AVRO"), str(body["schema"]), tuple(found.values())
            )
        return self._schemas[schema_id]

    def _collect(self, references: list[dict[str, Any]], found: dict[tuple[str, str], str]) -> None:
        """Add the schemas that are referred to, after those that they refer to themselves."""
        for reference in references:
            subject, version = str(reference["subject"]), str(reference["version"])
            if (subject, version) in found or len(found) > _MOST_REFERENCES:
                continue
            body = self._get(
                f"/subjects/{quote(subject, safe='')}/versions/{quote(version, safe='')}", f"schema {subject} version {version}"
            )
            self._collect(body.get("references") or [], found)
            found[subject, version] = str(body["schema"])

    def _get(self, path: str, what: str) -> dict[str, Any]:
        import requests

        try:
            answer = self._session.get(self._url + path, **self._settings)
        except requests.exceptions.SSLError as error:
            raise AuthenticationFailed(
                f"no trusted connection to the schema registry at {self._url}: {error}", hint="see http_ca_file"
            ) from error
        except requests.exceptions.Timeout as error:
            raise TimedOut(f"the schema registry at {self._url} did not answer", hint="raise --timeout") from error
        except requests.exceptions.RequestException as error:
            hint = "check registry_url; `kops context show --resolved` says where it comes from"
            raise Unreachable(f"no schema registry answers at {self._url}", hint=hint) from error
        if answer.status_code == _UNAUTHORIZED:
            raise AuthenticationFailed(f"the schema registry at {self._url} refused who we are", hint="see registry_username")
        if answer.status_code == _FORBIDDEN:
            raise AuthorizationFailed(f"the schema registry at {self._url} does not let us read {what}")
        if answer.status_code == _NOT_FOUND:
            raise NotFound(f"the registry at {self._url} has no {what}", hint="the record may come from another cluster's registry")
        try:
            body = answer.json() if answer.status_code == _OK else None
        except ValueError:
            body = None
        if not isinstance(body, dict) or "schema" not in body:
            raise OperationFailed(
                f"the schema registry at {self._url} answered {answer.status_code} for {what}", hint="is registry_url its API?"
            )
        return body
