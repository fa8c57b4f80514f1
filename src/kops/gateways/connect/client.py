"""The calls of Connect's REST interface that kops makes.

Every call but those of :meth:`Connect.restart` and :meth:`Connect.create` may be sent twice: reading, and setting something to a value,
may be done again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from kops.config.connection import Connection
from kops.core.connect import Connector, connector_of
from kops.core.errors import NotFound, OperationFailed
from kops.gateways.connect.workers import Tell, Workers, without_login

Config = Mapping[str, str]


class Connect:
    """The Connect cluster of a connection.

    :param tell: is told why a request is sent again, or to another worker
    """

    def __init__(self, connection: Connection, tell: Tell | None = None) -> None:
        self._workers = Workers(connection, tell)
        self._plugins: dict[bool, list[dict[str, Any]]] = {}

    def about(self) -> dict[str, Any]:
        """Return ``version``, ``commit`` and ``kafka_cluster_id`` of the worker that answers."""
        url, body = self._workers.ask("GET", "/")
        if not isinstance(body, dict) or "kafka_cluster_id" not in body:
            raise OperationFailed(f"what answers at {without_login(url)} is not Connect", hint="see connect_urls of the context")
        return {**body, "url": without_login(url)}

    def connectors(self) -> tuple[Connector, ...]:
        """Return every connector with its tasks and configuration, by one request.

        :raises Unreachable: when no worker answers
        :raises KopsError: when a worker refuses
        """
        url, body = self._workers.ask("GET", "/connectors", parameters={"expand": ["status", "info"]})
        if not isinstance(body, dict):
            raise OperationFailed(
                f"Connect at {without_login(url)} does not expand its list of connectors", hint="Apache Kafka 2.3 and newer do"
            )
        return tuple(connector_of(name, item, without_login(url)) for name, item in sorted(body.items()))

    def connector(self, name: str) -> Connector:
        """Return one connector.

        :raises NotFound: when there is none of this name
        """
        at = _path(name)
        url, status = self._workers.ask("GET", f"{at}/status")
        _, info = self._workers.ask("GET", at)
        return connector_of(name, {"status": status, "info": info}, without_login(url))

    def topics(self, name: str) -> tuple[str, ...]:
        """Return the topics that a connector has used since it was made or reset (KIP-558); none where that is switched off."""
        try:
            _, body = self._workers.ask("GET", f"{_path(name)}/topics")
        except (NotFound, OperationFailed):
            return ()
        return tuple(sorted((body.get(name) or {}).get("topics") or ()))

    def plugins(self, *, connectors_only: bool = False) -> list[dict[str, Any]]:
        """Return the plugins of the worker that answers: ``class``, ``type``, ``version``; asked for once, they do not change."""
        if connectors_only not in self._plugins:
            _, body = self._workers.ask("GET", "/connector-plugins", parameters={"connectorsOnly": str(connectors_only).lower()})
            self._plugins[connectors_only] = list(body)
        return self._plugins[connectors_only]

    def plugin_settings(self, plugin: str) -> list[dict[str, Any]]:
        """Return the settings that a plugin takes: ``name``, ``type``, ``required``, ``default_value``, ``documentation`` and so on.

        :raises NotFound: when no worker has it
        """
        _, body = self._workers.ask("GET", f"/connector-plugins/{quote(plugin, safe='')}/config")
        return list(body)

    def validate(self, plugin: str, config: Config) -> dict[str, Any]:
        """Return what a plugin says of a configuration: ``error_count`` and ``configs``, each with ``definition`` and ``value``."""
        _, body = self._workers.ask("PUT", f"/connector-plugins/{quote(plugin, safe='')}/config/validate", body=dict(config))
        return dict(body)

    def put(self, name: str, config: Config) -> None:
        """Change the configuration of a connector; one that does not exist is created."""
        self._workers.ask("PUT", f"{_path(name)}/config", body=dict(config))

    def create(self, name: str, config: Config, state: str | None = None) -> None:
        """Create a connector, and never change one that somebody else has made meanwhile.

        :param state: PAUSED or STOPPED: it does not run yet (KIP-980, since Kafka 3.7)
        :raises StateMoved: when it exists already
        """
        body = {"name": name, "config": {**config, "name": name}} | ({"initial_state": state} if state else {})
        self._workers.ask("POST", "/connectors", body=body, repeatable=False)

    def delete(self, name: str) -> None:
        """Delete a connector; one that is gone already is no error."""
        try:
            self._workers.ask("DELETE", _path(name))
        except NotFound:
            return

    def change_state(self, name: str, verb: str) -> None:
        """Pause, resume or stop a connector; Connect does it a little later.

        :param verb: ``pause``, ``resume`` or ``stop``
        """
        self._workers.ask("PUT", f"{_path(name)}/{verb}")

    def restart(self, name: str, *, only_failed: bool = False) -> None:
        """Restart a connector and its tasks (KIP-745). Not sent again when the answer is lost: it would restart them twice."""
        parameters = {"includeTasks": "true", "onlyFailed": str(only_failed).lower()}
        self._workers.ask("POST", f"{_path(name)}/restart", parameters=parameters, repeatable=False)

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task; not sent again either."""
        self._workers.ask("POST", f"{_path(name)}/tasks/{task}/restart", repeatable=False)

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Return a connector's offsets, each with ``partition`` and ``offset`` (KIP-875)."""
        _, body = self._workers.ask("GET", f"{_path(name)}/offsets")
        return list(body.get("offsets") or ())

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        """Set offsets of a stopped connector; None deletes one. Return what Connect says of it."""
        _, body = self._workers.ask("PATCH", f"{_path(name)}/offsets", body={"offsets": [dict(one) for one in offsets]})
        return str((body or {}).get("message", ""))

    def reset_offsets(self, name: str) -> str:
        """Delete all offsets of a stopped connector. Return what Connect says of it."""
        _, body = self._workers.ask("DELETE", f"{_path(name)}/offsets")
        return str((body or {}).get("message", ""))

    def loggers(self) -> dict[str, dict[str, Any]]:
        """Return the loggers that have a level of their own, of the worker that answers: ``level`` and ``last_modified``."""
        _, body = self._workers.ask("GET", "/admin/loggers")
        return dict(body)

    def set_logger(self, name: str, level: str) -> list[str]:
        """Set the level of a logger on every worker (KIP-976); return the loggers that changed on the one that answers."""
        _, body = self._workers.ask("PUT", f"/admin/loggers/{quote(name, safe='')}", parameters={"scope": "cluster"}, body={"level": level})
        return [] if body is None else list(body)


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"
