"""A schema registry with Confluent's API (Confluent, Apicurio, Karapace, Redpanda)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kops.config.connection import Connection
from kops.config.http import http_session, http_settings, path_segment
from kops.core.errors import (
    AuthenticationFailed,
    AuthorizationFailed,
    ConfigError,
    KopsError,
    NotFound,
    OperationFailed,
    TimedOut,
    Unreachable,
    UsageProblem,
)
from kops.core.schemas.models import LATEST, RegisteredSchema
from kops.core.secret_shapes import without_login
from kops.gateways.http import AnswerTooLarge, HttpAnswer, Shape, conforming, exchange

if TYPE_CHECKING:
    import requests

ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
CONTENT = "application/vnd.schemaregistry.v1+json"
_MOST_REFERENCES = 1000
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT, _UNPROCESSABLE, _OK = 401, 403, 404, 409, 422, 200
_OWN_CODES = range(40400, 40500)
"""``error_code`` of a registry's own 404: no such subject (40401), version (40402), schema (40403). A wrong path has 404 or none."""
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""What Confluent's client retries too (``RestService.isRetriable``)."""
_WAITS = (0.2, 0.4, 0.8)
"""Seconds before each retry of a request that only reads."""
_REFERENCES: Shape = [{"name": str, "subject": str, "version": int}]
SCHEMA: Shape = {"schema": str, "schemaType?": str, "references?": _REFERENCES}


class IncompatibleSchema(KopsError):
    """The registry rejects a schema because of the compatibility level of its subject."""

    slug = "incompatible_schema"


class SchemaRegistry:
    """The registry of a connection, over one session. A schema never changes under its id, so each is requested once.

    :raises ConfigError: when the connection has no registry
    """

    def __init__(self, connection: Connection) -> None:
        if not connection.registry_url:
            raise ConfigError(
                "there is no schema registry for this cluster",
                hint="set registry_url in the context: kops context add NAME --registry-url URL ...; or name another format",
            )
        self._url = connection.registry_url.rstrip("/")
        self._settings = http_settings(connection, "registry")
        self._session = http_session()
        self._session.headers["Accept"] = ACCEPT
        self._schemas: dict[int, RegisteredSchema] = {}

    @property
    def shown_url(self) -> str:
        return without_credentials(self._url)

    def schema(self, schema_id: int) -> RegisteredSchema:
        """Return a schema with all its references.

        :raises NotFound: when the registry itself answers that it has no schema with that id, or lacks a schema that it refers to
        :raises KopsError: when the registry, or whatever answers in its place, is at fault
        """
        if schema_id not in self._schemas:
            body = self.ask("GET", f"/schemas/ids/{schema_id}", f"schema {schema_id}", shape=SCHEMA)
            self._schemas[schema_id] = RegisteredSchema(
                schema_id, body.get("schemaType") or "AVRO", body["schema"], self.referenced(body.get("references"))
            )
        return self._schemas[schema_id]

    def version_of(self, place: str) -> int:
        """Return the schema id of a version of a subject.

        :param place: SUBJECT for its latest version, or SUBJECT:VERSION; the subject may contain colons
        :raises NotFound: when there is none
        """
        subject, colon, version = place.rpartition(":")
        if not (colon and version.isascii() and version.isdigit()):
            subject, version = place, LATEST
        what = f"subject {subject}" if version == LATEST else f"version {version} of subject {subject}"
        return int(self.ask("GET", f"{subject_path(subject)}/versions/{version}", what, shape={"id": int})["id"])

    def referenced(self, references: Any) -> tuple[tuple[str, str], ...]:
        """Return name and text of the referenced schemas, each after those that it references itself.

        :param references: in the format of the registry's API
        :raises NotFound: when one of them does not exist
        """
        found: dict[tuple[str, str], tuple[str, str]] = {}
        self._collect(references or [], found)
        return tuple(found.values())

    def _collect(self, references: list[dict[str, Any]], found: dict[tuple[str, str], tuple[str, str]]) -> None:
        for reference in references:
            subject, version = reference["subject"], str(reference["version"])
            if (subject, version) in found or len(found) > _MOST_REFERENCES:
                continue
            path = f"{subject_path(subject)}/versions/{quote(version, safe='')}"
            body = self.ask("GET", path, f"schema {subject} version {version}", shape=SCHEMA)
            self._collect(body.get("references") or [], found)
            found[subject, version] = (reference["name"], body["schema"])

    def ask(self, method: str, path: str, what: str, body: Any = None, *, shape: Shape = object) -> Any:
        """Return the JSON of an answer. A request that only reads is repeated while the registry is not available.

        :param what: what is requested, for errors
        :param body: to send as JSON
        :param shape: what the answer must look like
        :raises NotFound: when the registry itself answers that it has no such thing; a proxy's 404 is another error
        :raises IncompatibleSchema: when it rejects a schema as incompatible with another (409)
        :raises UsageProblem: when it does not accept a schema as valid (422)
        :raises KopsError: for every other error
        """
        given = {} if body is None else {"json": body, "headers": {"Content-Type": CONTENT}}
        answer = self._answer(method, self._url + path, {**given, **self._settings})
        try:
            found = answer.json()
        except ValueError:
            found = None
        if answer.is_redirect:
            # A redirected DELETE would become a GET, whose answer says nothing about the deletion.
            there = without_credentials(str(answer.headers.get("Location", "")))
            raise OperationFailed(f"the schema registry at {self.shown_url} points to {there}", hint="set registry_url to where it is")
        if answer.status_code != _OK:
            raise self._error(answer.status_code, found, what)
        if found is None:
            raise self._unusual(answer.status_code, what)
        try:
            return conforming(found, shape)
        except TypeError as wrong:
            raise self._unusual(answer.status_code, what, f" in an unexpected format: {wrong}") from wrong

    def _answer(self, method: str, url: str, settings: Mapping[str, Any]) -> HttpAnswer:
        """Return the first answer that is not a passing failure, or the last one, within the time that a request may take."""
        deadline = time.monotonic() + self._settings["timeout"]
        for wait in (*_WAITS, None):
            given = {**settings, "timeout": max(deadline - time.monotonic(), 0.001)}
            last = wait is None or method != "GET" or time.monotonic() + wait > deadline
            try:
                answer = sent(self._session, method, url, self.shown_url, given)
            except Unreachable:
                if last:
                    raise
            else:
                if last or answer.status_code not in _PASSING:
                    return answer
            time.sleep(wait or 0)
        raise AssertionError("the last attempt returns or raises")

    def _error(self, status: int, body: Any, what: str) -> KopsError:
        url = self.shown_url
        said = str(body["message"]) if isinstance(body, dict) and body.get("message") else ""
        code = {"error_code": body["error_code"]} if isinstance(body, dict) and isinstance(body.get("error_code"), int) else {}
        if status == _NOT_FOUND and code.get("error_code") not in _OWN_CODES:
            return OperationFailed(
                f"something other than the API of a schema registry answers 404 at {url} for {what}",
                hint="check registry_url: it may lack the path of the API, or lead to a proxy",
                **code,
            )
        known: dict[int, KopsError] = {
            _UNAUTHORIZED: AuthenticationFailed(f"the schema registry at {url} refused who we are", hint="see registry_username"),
            _FORBIDDEN: AuthorizationFailed(f"the schema registry at {url} does not let us have {what}"),
            _NOT_FOUND: NotFound(f"the registry at {url} has no {what}", hint="is it another cluster's registry?", **code),
            _CONFLICT: IncompatibleSchema(f"the registry at {url} refuses {what} as incompatible: {said or 'no reason given'}", **code),
        }
        if status in known:
            return known[status]
        if status == _UNPROCESSABLE and said:
            return UsageProblem(f"the registry at {url} does not take {what}: {said}", **code)
        if said:
            return OperationFailed(f"the schema registry at {url} answered {status} for {what}: {said}", **code)
        return self._unusual(status, what)

    def _unusual(self, status: int, what: str, how: str = "") -> KopsError:
        text = f"the schema registry at {self.shown_url} answered {status} for {what}{how}"
        return OperationFailed(text, hint="is registry_url its API?")


def sent(session: requests.Session, method: str, url: str, shown_url: str, settings: Mapping[str, Any]) -> HttpAnswer:
    """Send a request to a registry; return its answer, whatever that is.

    :param shown_url: the registry's address, for errors
    :param settings: of the request, for ``requests``; ``timeout`` bounds it as a whole
    :raises KopsError: when there is no answer
    """
    import requests

    try:
        return exchange(session, method, url, **settings)
    except AnswerTooLarge as error:
        raise OperationFailed(f"the schema registry at {shown_url}: {error}", hint="is registry_url its API?") from error
    except requests.exceptions.SSLError as error:
        raise AuthenticationFailed(
            f"no trusted connection to the schema registry at {shown_url}: {error}", hint="see http_ca_file"
        ) from error
    except requests.exceptions.Timeout as error:
        raise TimedOut(f"the schema registry at {shown_url} did not answer completely in time", hint="raise --timeout") from error
    except requests.exceptions.RequestException as error:
        hint = "check registry_url; `kops context show --resolved` says where it comes from"
        raise Unreachable(f"no schema registry answers at {shown_url}", hint=hint) from error


def subject_path(subject: str) -> str:
    return f"/subjects/{path_segment(subject, 'subject')}"


def without_credentials(url: str) -> str:
    """Return an address without any credentials and query."""
    return without_login(url).split("?", 1)[0]
