"""Groups for tests: live members, Apache's own tool, and the broker's answers without kops."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from kops.core.offsets.apache_csv import OffsetRow, read_offsets
from support.patience import HANG_SECONDS
from support.streams import java_command
from support.streams_apps import Cluster, wait_for

SOURCES = Path(__file__).parent.parent / "broker" / "oracle"
STREAM_TIME_130 = "AgAAAAAAAACC"
"""The metadata with which Kafka Streams commits at partition time 130."""


@contextlib.contextmanager
def member(servers: str, group: str, *topics: str, consumer: Any = None, **settings: Any) -> Iterator[Any]:
    """Keep a consumer in a group until the block ends; it has its partitions when the block starts. It commits nothing."""
    config = {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "latest"}
    joined = consumer or Consumer({**config, **{name.replace("_", "."): value for name, value in settings.items()}})
    done, assigned = threading.Event(), threading.Event()
    # A consumer belongs to one thread: asking it for its assignment while another polls blocks both.
    joined.subscribe(list(topics), **({} if consumer else {"on_assign": lambda *_: assigned.set()}))

    def stay() -> None:
        while not done.is_set():
            joined.poll(0.05)

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    try:
        if consumer is None:
            assert assigned.wait(HANG_SECONDS), f"{group} gets no partitions"
        yield joined
    finally:
        done.set()
        thread.join()
        joined.close()


@contextlib.contextmanager
def visitor(servers: str, group: str, *topics: str) -> Iterator[None]:
    """Keep a consumer in a group when the block starts that leaves half a second later."""
    joined, leave = threading.Event(), threading.Event()

    def visit() -> None:
        with member(servers, group, *topics):
            joined.set()
            leave.wait(HANG_SECONDS)

    thread = threading.Thread(target=visit)
    thread.start()
    assert joined.wait(HANG_SECONDS)
    threading.Timer(0.5, leave.set).start()
    yield
    thread.join()


def visible(create: Callable[..., str], cluster: Cluster) -> Callable[..., str]:
    """Wrap the ``topic`` fixture: the broker that is asked next must have heard of the topic."""

    def made(*arguments: Any, **options: Any) -> str:
        name = create(*arguments, **options)
        wait_for(f"the broker to know {name}", lambda: name in cluster.topics(name))
        return name

    return made


class ApacheTool:
    """``kafka-consumer-groups`` in one long-lived JVM; a context manager."""

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def __enter__(self) -> ApacheTool:
        command, pipe = java_command("ApacheGroups", sources=SOURCES), subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(HANG_SECONDS)

    def run(self, *arguments: str) -> str:
        """Return what the tool prints."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(["--bootstrap-server", self.servers, *arguments]) + "\n")
        self._process.stdin.flush()
        lines: list[str] = []
        while (line := self._process.stdout.readline()) != "END\n":
            assert line, "the tool has ended: " + "".join(lines)
            lines.append(line)
        return "".join(lines)

    def reset(self, group: str, *arguments: str, execute: bool = False) -> list[OffsetRow]:
        """Return the offsets that a reset would go to, or goes to."""
        return read_offsets(self.export("--group", group, *arguments, "--execute" if execute else "--dry-run"))

    def export(self, *arguments: str) -> str:
        """Return the CSV of a reset, without the warnings that the tool prints in between."""
        printed = self.run("--reset-offsets", "--export", *arguments)
        csv = [line for line in printed.splitlines(keepends=True) if re.search(r",\d+,\d+$", line)]
        assert csv, printed
        return "".join(csv)
