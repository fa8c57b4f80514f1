"""Apache's tools in one long-lived JVM: what a broker says without kops."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kops.core.offsets.apache_csv import OffsetRow, read_offsets
from support.patience import HANG_SECONDS
from support.streams import java_command

SOURCES = Path(__file__).parent.parent / "broker" / "oracle"
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"


@pytest.fixture(scope="session")
def apache(broker) -> Iterator[ApacheTools]:
    """Apache's tools for the Kafka that the whole run shares."""
    with ApacheTools(broker.bootstrap_servers) as tools:
        yield tools


class ApacheTools:
    """Tools by the name of their class; a context manager."""

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def __enter__(self) -> ApacheTools:
        command, pipe = java_command("ApacheTools", sources=SOURCES), subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(HANG_SECONDS)

    def run(self, *arguments: str) -> str:
        """Return what a tool prints.

        :param arguments: those of the tool besides the address of the brokers, and its class
        """
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
        """Return the offsets that a reset by ``kafka-consumer-groups`` would go to, or goes to."""
        return read_offsets(self.export("--group", group, *arguments, "--execute" if execute else "--dry-run"))

    def export(self, *arguments: str) -> str:
        """Return the CSV of a reset, without the warnings that the tool prints in between."""
        printed = self.run("--reset-offsets", "--export", *arguments, GROUPS)
        csv = [line for line in printed.splitlines(keepends=True) if re.search(r",\d+,\d+$", line)]
        assert csv, printed
        return "".join(csv)

    def own_settings(self, topic: str) -> dict[str, str]:
        """Return what ``kafka-configs`` shows as set on a topic."""
        printed = self.run("--describe", "--entity-type", "topics", "--entity-name", topic, CONFIGS)
        return dict(re.findall(r"^\s+(\S+?)=(\S*) sensitive=", printed, re.MULTILINE))

    def partitions(self, topic: str) -> int:
        """Return what ``kafka-topics`` counts."""
        return int(re.search(r"PartitionCount:\s*(\d+)", self.run("--describe", "--topic", topic, TOPICS))[1])

    def topics(self) -> set[str]:
        """Return what ``kafka-topics`` lists."""
        return set(self.run("--list", TOPICS).split())

    def offsets(self, topic: str, time: int | str) -> dict[int, int]:
        """Return what ``kafka-get-offsets`` prints: -1 is the log end, -2 the log start; a partition without an answer is left out."""
        printed = self.run("--topic", topic, "--time", str(time), OFFSETS)
        return {int(number): int(offset) for number, offset in re.findall(rf"^{re.escape(topic)}:(\d+):(\d+)$", printed, re.MULTILINE)}

    def sizes(self, topic: str) -> dict[int, int]:
        """Return what ``kafka-log-dirs`` prints for each partition, over all brokers."""
        printed = self.run("--describe", "--topic-list", topic, LOG_DIRS)
        body = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
        found = [part for broker in body["brokers"] for log_dir in broker["logDirs"] for part in log_dir["partitions"]]
        return {int(part["partition"].rpartition("-")[2]): part["size"] for part in found}
