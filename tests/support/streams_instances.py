"""Instances of a real Kafka Streams application that know each other's ``application.server``, in one long-lived JVM."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaException

from support.patience import HANG_SECONDS
from support.streams import java_command
from support.streams_apps import Cluster, wait_for

JAVA_SOURCES = Path(__file__).parent.parent / "streams" / "described"


def described_topologies(version: str) -> dict[str, dict[str, Any]]:
    """Return, for topologies of every kind, what the library's ``describe()`` prints and what its methods answer."""
    done = subprocess.run(java_command("DescribeTopologies", version, sources=JAVA_SOURCES), capture_output=True, text=True, check=True)
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def forget_groups(cluster: Cluster, *names: str) -> None:
    """Delete groups that may be there; one that is not, or still has members, is ignored."""
    for gone in cluster.admin.delete_consumer_groups(list(names)).values():
        with contextlib.suppress(KafkaException):
            gone.result(HANG_SECONDS)


class Instances:
    """Real instances; a context manager.

    :param folder: for their local state
    """

    def __init__(self, servers: str, folder: Path) -> None:
        self.servers, self.folder = servers, folder

    def __enter__(self) -> Instances:
        self._errors = tempfile.TemporaryFile("w+")
        pipe = subprocess.PIPE
        command = java_command("StreamsInstances", sources=JAVA_SOURCES)
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, encoding="utf-8")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(HANG_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._errors.close()

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Make a request.

        :raises RuntimeError: with what went wrong in Java
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **more}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise RuntimeError(f"the instances have ended: {self._errors.read()[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def start(self, name: str, prefix: str, application: str, topology: str | None = None, **settings: Any) -> None:
        """Start an instance of a topology on the topics of a prefix; ``application.server`` and others with ``_`` for ``.``."""
        base = {
            "application.id": application,
            "bootstrap.servers": self.servers,
            "state.dir": str(self.folder / name),
            "commit.interval.ms": 100,
            "client.id": name,
        }
        base |= {key.replace("_", "."): value for key, value in settings.items()}
        self.ask("start", name=name, prefix=prefix, topology=topology, settings=base)

    def wait_until_running(self) -> None:
        """Wait for the state RUNNING of all."""
        wait_for("the instances to run", lambda: self.ask("running")["running"])

    def stop(self, name: str) -> None:
        """Close one; it leaves its group."""
        self.ask("stop", name=name)

    def text(self, prefix: str, topology: str | None = None) -> str:
        """Return what ``Topology.describe()`` prints."""
        text: str = self.ask("text", prefix=prefix, topology=topology)["text"]
        return text

    def encoded(self, version: int) -> tuple[bytes, bytes]:
        """Return a subscription and an assignment as the library encodes them in this version of its protocol."""
        answer = self.ask("encode", version=version)
        return base64.b64decode(answer["subscription"]), base64.b64decode(answer["assignment"])
