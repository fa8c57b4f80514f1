"""The requests of Connect's REST API that kops uses.

Every request may be sent twice, except those of :meth:`Connect.restart` and :meth:`Connect.create`: reading and setting a value
are idempotent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from kops.config.connection import Connection
from kops.config.http import path_segment
from kops.core.connect.models import Connector, connector_of
from kops.core.errors import AuthorizationFailed, NotFound, OperationFailed, UsageProblem
from kops.core.permit import ALWAYS, Permit
from kops.core.secret_shapes import without_login
from kops.gateways.connect.answers import ABOUT, CONNECTOR, LOGGERS, OFFSETS, PLUGINS, SETTINGS, VALIDATION, is_shaped, message_of, shaped
from kops.gateways.connect.workers import Notify, Workers
from kops.gateways.http import Shape

Config = Mapping[str, str]
_BAD_REQUEST = 400
_CERTAIN = 100
"""Characters of a name that are looked for in a message, which may be shortened."""
_TRIMMED = "".join(map(chr, range(0x21)))
"""What Java's ``String.trim`` removes, as Connect does from names (``ConnectorsResource.createConnector``)."""
_UNREACHABLE_NAME = (
    "only the workers' topic of configurations can remove it: write a record with the key connector-NAME and no value"
    " to config.storage.topic; then create it under a name of letters, digits, dots and dashes"
)


class Connect:
    """The Connect cluster of a connection.

    :param notify: receives the reason when a request is retried or sent to another worker
    :param permit: to send what may change something
    """

    def __init__(self, connection: Connection, notify: Notify | None = None, permit: Permit = ALWAYS) -> None:
        self._workers = Workers(connection, notify, permit)
        self._plugins: dict[bool, list[dict[str, Any]]] = {}
        self._settings: dict[str, list[dict[str, Any]]] = {}

    def about(self) -> dict[str, Any]:
        """Return ``version``, ``commit`` and ``kafka_cluster_id`` of the worker that answers."""
        url, body = self._workers.ask("GET", "/")
        if not is_shaped(body, ABOUT):
            raise OperationFailed(f"the server at {without_login(url)} is not Connect", hint="check connect_urls of the context")
        return {**body, "url": without_login(url)}

    def connectors(self) -> tuple[Connector, ...]:
        """Return every connector with its tasks and configuration, in one request.

        :raises Unreachable: when no worker answers
        :raises KopsError: when a worker reports an error
        """
        url, body = self._workers.ask("GET", "/connectors", parameters={"expand": ["status", "info"]})
        if not isinstance(body, dict):
            raise OperationFailed(
                f"Connect at {without_login(url)} does not expand its list of connectors", hint="Apache Kafka 2.3 and newer do"
            )
        return tuple(_connector(url, "/connectors", name, item) for name, item in sorted(body.items()))

    def names(self) -> tuple[str, ...]:
        """Return the names of all connectors, those without a state too."""
        _, body = self._workers.ask("GET", "/connectors")
        return tuple(name for name in body if isinstance(name, str)) if isinstance(body, list) else ()

    def connector(self, name: str) -> Connector:
        url, status = self._ask("GET", name, "/status")
        _, info = self._ask("GET", name)
        return _connector(url, f"/connectors/{name}/status", name, {"status": status, "info": info})

    def obstacle(self, name: str) -> str | None:
        """Return why requests about a connector of this name would not reach it; None if they would, whether or not it exists.

        A worker is asked, because it depends on its release and on what stands before it which characters it takes in an address;
        any name can be created (KAFKA-4372, KAFKA-4930).
        """
        try:
            _, body = self._ask("GET", name)
        except NotFound as missing:
            body = {"name": name} if " ".join(name.split())[:_CERTAIN] in missing.message else None
        except (OperationFailed, UsageProblem) as refused:
            if isinstance(refused, OperationFailed) and refused.details.get("status") != _BAD_REQUEST:
                raise
            return refused.message.split(": ", 1)[-1]
        if not isinstance(body, dict) or body.get("name") != name:
            return "its address leads to something else"
        return "Connect removes spaces at both ends of a name" if name.strip(_TRIMMED) != name else None

    def topics(self, name: str) -> tuple[str, ...]:
        """Return the topics that a connector has used since it was created or reset (KIP-558); none if tracking is disabled."""
        try:
            body = self._read_of(name, "GET", "/topics", {"*": {"topics?": [str]}})
        except (AuthorizationFailed, NotFound):  # 403 where tracking is disabled, 404 before Kafka 2.5
            return ()
        return tuple(sorted((body.get(name) or {}).get("topics") or ()))

    def plugins(self, *, connectors_only: bool = False) -> list[dict[str, Any]]:
        """Return the plugins of the worker that answers: ``class``, ``type``, ``version``. Cached, because they do not change."""
        if connectors_only not in self._plugins:
            only = {"connectorsOnly": str(connectors_only).lower()}
            self._plugins[connectors_only] = self._read("GET", "/connector-plugins", PLUGINS, parameters=only)
        return self._plugins[connectors_only]

    def plugin_settings(self, plugin: str) -> list[dict[str, Any]]:
        """Return the settings of a plugin: ``name``, ``type``, ``required``, ``default_value``, ``documentation`` and so on. Cached.

        :raises NotFound: when no worker has it
        """
        if plugin not in self._settings:
            self._settings[plugin] = self._read("GET", f"/connector-plugins/{quote(plugin, safe='')}/config", SETTINGS)
        return self._settings[plugin]

    def validate(self, plugin: str, config: Config) -> dict[str, Any]:
        """Validate a configuration: ``error_count`` and ``configs``, each with ``definition`` and ``value``."""
        path = f"/connector-plugins/{quote(plugin, safe='')}/config/validate"
        found: dict[str, Any] = self._read("PUT", path, VALIDATION, body=dict(config))
        return found

    def put(self, name: str, config: Config) -> None:
        """Create a connector or change its configuration."""
        self._ask("PUT", name, "/config", body=dict(config))

    def create(self, name: str, config: Config, state: str | None = None) -> None:
        """Create a connector; never change one that was created by others in the meantime.

        :param state: initial state, PAUSED or STOPPED (KIP-980, since Kafka 3.7)
        :raises StateMoved: when it exists already
        """
        body = {"name": name, "config": {**config, "name": name}} | ({"initial_state": state} if state else {})
        self._workers.ask("POST", "/connectors", body=body, repeatable=False)

    def delete(self, name: str) -> None:
        """Delete a connector; it is not an error if it no longer exists."""
        try:
            self._ask("DELETE", name)
        except NotFound:
            return

    def change_state(self, name: str, verb: str) -> None:
        """Pause, resume or stop a connector; Connect does so asynchronously.

        :param verb: ``pause``, ``resume`` or ``stop``
        """
        self._ask("PUT", name, f"/{verb}")

    def restart(self, name: str, *, only_failed: bool = False) -> None:
        """Restart a connector and its tasks (KIP-745). Not retried if the answer is lost: that would restart them twice."""
        parameters = {"includeTasks": "true", "onlyFailed": str(only_failed).lower()}
        self._ask("POST", name, "/restart", parameters=parameters, repeatable=False)

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task; not retried either."""
        self._ask("POST", name, f"/tasks/{task}/restart", repeatable=False)

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Return a connector's offsets, each with ``partition`` and ``offset`` (KIP-875)."""
        return self._read_of(name, "GET", "/offsets", OFFSETS).get("offsets") or []

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        """Set offsets of a stopped connector; None deletes one. Return Connect's message."""
        _, body = self._ask("PATCH", name, "/offsets", body={"offsets": [dict(one) for one in offsets]})
        return message_of(body)

    def reset_offsets(self, name: str) -> str:
        """Delete all offsets of a stopped connector. Return Connect's message."""
        _, body = self._ask("DELETE", name, "/offsets")
        return message_of(body)

    def loggers(self) -> dict[str, dict[str, Any]]:
        """Return the loggers that have a level of their own on the worker that answers: ``level`` and ``last_modified``."""
        found: dict[str, dict[str, Any]] = self._read("GET", "/admin/loggers", LOGGERS)
        return found

    def set_logger(self, name: str, level: str) -> list[str]:
        """Set the level of a logger on every worker (KIP-976); return the loggers that changed on the worker that answers."""
        _, body = self._workers.ask("PUT", f"/admin/loggers/{quote(name, safe='')}", parameters={"scope": "cluster"}, body={"level": level})
        return list(body) if isinstance(body, list) else []

    def _read(self, method: str, path: str, shape: Shape, **how: Any) -> Any:
        """Return the answer to a request.

        :raises OperationFailed: when it does not have the shape
        """
        url, body = self._workers.ask(method, path, **how)
        return shaped(without_login(url), f"{method} {path}", body, shape)

    def _read_of(self, name: str, method: str, path: str, shape: Shape, **how: Any) -> Any:
        """Return the answer to a request about a connector; see ``_read``."""
        url, body = self._ask(method, name, path, **how)
        return shaped(without_login(url), f"{method} /connectors/{name}{path}", body, shape)

    def _ask(self, method: str, name: str, path: str = "", **how: Any) -> tuple[str, Any]:
        """Send a request about a connector.

        :param path: what follows its name in the address
        :raises OperationFailed: when a worker does not take the name in an address
        """
        segment = path_segment(name, "connector")
        try:
            return self._workers.ask(method, f"/connectors/{segment}{path}", **how)
        except OperationFailed as refused:
            if segment == name or "said" not in refused.details or refused.details.get("status") != _BAD_REQUEST:
                raise
            said = refused.details["said"] or "400"
            text = f"no request reaches connector {name}: the server does not take this name in an address: {said}"
            raise OperationFailed(text, hint=_UNREACHABLE_NAME, status=_BAD_REQUEST) from refused


def _connector(url: str, path: str, name: str, item: Any) -> Connector:
    shown = without_login(url)
    return connector_of(name, shaped(shown, f"GET {path} of {name}", item, CONNECTOR))
