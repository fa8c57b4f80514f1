"""Kafka Connect with connectors in memory, in the shape of ``kops.gateways.connect.Connect``."""

from __future__ import annotations

import copy
from typing import Any

from kops.core.connect.models import Connector, connector_of

CLUSTER_ID = "connect-in-memory"
_STATES = {"pause": "PAUSED", "resume": "RUNNING", "stop": "STOPPED"}


class ConnectInMemory:
    """Workers that do at once what they are asked.

    :param body: ``connectors`` (name -> state, config, offsets) and ``loggers`` (name -> level)
    """

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = copy.deepcopy(body)
        self.restarted: list[str] = []

    def about(self) -> dict[str, str]:
        return {"kafka_cluster_id": CLUSTER_ID, "version": "4.3.1", "commit": "c", "url": "http://w:8083"}

    def connectors(self) -> tuple[Connector, ...]:
        return tuple(self.connector(name) for name in sorted(self.body["connectors"]))

    def connector(self, name: str) -> Connector:
        found = self.body["connectors"][name]
        tasks = [] if found["state"] == "STOPPED" else [{"id": 0, "state": found["state"], "worker_id": "w:8083"}]
        status = {"connector": {"state": found["state"], "worker_id": "w:8083"}, "tasks": tasks, "type": found["type"]}
        return connector_of(name, {"status": status, "info": {"config": {**found["config"], "name": name}}})

    def obstacle(self, _name: str) -> None:
        return None

    def plugin_settings(self, _plugin: str) -> list[dict[str, Any]]:
        return []

    def create(self, name: str, config: dict[str, str], state: str | None = None) -> None:
        assert name not in self.body["connectors"]
        kind = "sink" if "topics" in config else "source"
        self.body["connectors"][name] = {"type": kind, "state": state or "RUNNING", "config": dict(config), "offsets": []}

    def put(self, name: str, config: dict[str, str]) -> None:
        self.body["connectors"][name]["config"] = {key: value for key, value in config.items() if key != "name"}

    def delete(self, name: str) -> None:
        self.body["connectors"].pop(name, None)

    def change_state(self, name: str, verb: str) -> None:
        self.body["connectors"][name]["state"] = _STATES[verb]

    def restart(self, name: str, *, only_failed: bool = False) -> None:
        self.restarted.append(f"{name} {only_failed}")

    def restart_task(self, name: str, task: int) -> None:
        self.restarted.append(f"{name} {task}")

    def offsets(self, name: str) -> list[dict[str, Any]]:
        return copy.deepcopy(self.body["connectors"][name]["offsets"])

    def alter_offsets(self, name: str, offsets: list[dict[str, Any]]) -> str:
        assert self.body["connectors"][name]["state"] == "STOPPED"
        kept = [one for one in self.body["connectors"][name]["offsets"] if one["partition"] not in [new["partition"] for new in offsets]]
        written = [copy.deepcopy(dict(new)) for new in offsets if new["offset"] is not None]
        self.body["connectors"][name]["offsets"] = sorted([*kept, *written], key=str)
        return "The offsets for this connector have been altered successfully"

    def reset_offsets(self, name: str) -> str:
        assert self.body["connectors"][name]["state"] == "STOPPED"
        self.body["connectors"][name]["offsets"] = []
        return "The offsets for this connector have been reset successfully"

    def loggers(self) -> dict[str, dict[str, Any]]:
        return {name: {"level": level, "last_modified": None} for name, level in self.body["loggers"].items()}

    def set_logger(self, name: str, level: str) -> list[str]:
        self.body["loggers"][name] = level
        return [name]
