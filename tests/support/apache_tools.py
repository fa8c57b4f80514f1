"""Apache's tools for topics, in one long-lived JVM: what a broker says without kops."""

from __future__ import annotations

import json
import re
import subprocess

from support.consumer_groups import SOURCES, ApacheTool
from support.streams import java_command

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"


class ApacheTools(ApacheTool):
    """``kafka-topics``, ``kafka-configs``, ``kafka-get-offsets``, ``kafka-delete-records``, ``kafka-log-dirs``; a context manager."""

    def __enter__(self) -> ApacheTools:
        command, pipe = java_command("ApacheTools", sources=SOURCES), subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8")
        return self

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
