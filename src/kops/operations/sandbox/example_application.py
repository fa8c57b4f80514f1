"""The applications under ``examples/``: compile them with the JDK, and start them against a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import kops
from kops.core.errors import MissingRequirement, OperationFailed, TimedOut
from kops.gateways.kafka import Kafka
from kops.gateways.machine.jars import class_path
from kops.gateways.machine.jdk import FOR_A_SHORT_RUN, require_jdk
from kops.gateways.machine.processes import ProcessIdentity, start_detached, stop

READY = "READY"
JVM_OPTIONS = ("-Xmx256m", *FOR_A_SHORT_RUN)
"""Optimized for a fast start: an example processes a handful of records."""


def examples_directory() -> Path:
    """Return the directory of the examples: in the source tree or in the installation.

    :raises MissingRequirement: when the installation does not include them
    """
    places = (Path(kops.__file__).parents[2] / "examples", Path(sys.prefix) / "share" / "kops" / "examples")
    for place in places:
        if place.is_dir():
            return place
    raise MissingRequirement("the examples are not installed", hint="install kops from its source tree")


@dataclass(frozen=True)
class Application:
    """A compiled Kafka Streams application.

    :param main_class: the class in the one Java file of the example
    :param directory: for the compiled classes, the local state and the log
    :param jars: Apache Kafka's
    """

    main_class: str
    directory: Path
    jars: Sequence[Path]

    @property
    def state_directory(self) -> Path:
        return self.directory / "state"

    @property
    def log(self) -> Path:
        return self.directory / "application.log"

    def compile(self, source: Path) -> None:
        javac = require_jdk().tool("javac")
        command = [str(javac), "-cp", class_path(self.jars), "-d", str(self.directory / "classes"), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
        if done.returncode:
            raise OperationFailed(f"{source.name} does not compile: {done.stderr.strip()}", hint="use JDK 17 or newer")

    def start(self, bootstrap_servers: str, *options: str, patience: float = 60.0) -> ProcessIdentity:
        """Start the application and wait until it processes records.

        :param patience: seconds to wait until it is ready
        :raises OperationFailed: when it ends before that, with the last lines of its log
        """
        self.log.unlink(missing_ok=True)
        path = os.pathsep.join([str(self.directory / "classes"), class_path(self.jars)])
        arguments = (bootstrap_servers, str(self.state_directory), *options)
        command = [str(require_jdk().java), *JVM_OPTIONS, "-cp", path, self.main_class, *arguments]
        process = start_detached(command, log=self.log, directory=self.directory, environment=os.environ)
        deadline = time.monotonic() + patience
        while READY not in self.log.read_text(errors="replace"):
            if not process.running:
                raise OperationFailed(f"{self.main_class} ended immediately: {self._last_lines()}", hint=f"its log is {self.log}")
            if time.monotonic() > deadline:
                stop(process)
                raise TimedOut(
                    f"{self.main_class} was not ready within {patience:g} s: {self._last_lines()}", hint=f"its log is {self.log}"
                )
            time.sleep(0.1)
        return process

    def _last_lines(self, count: int = 5) -> str:
        return " / ".join(self.log.read_text(errors="replace").splitlines()[-count:]) or "it printed nothing"


def wait_until_processed(kafka: Kafka, application_id: str, topics: Sequence[str], *, patience: float = 60.0) -> None:
    """Wait until an application has committed the end of every partition of its topics.

    :param topics: its input topics, including repartition topics
    :raises TimedOut: when it has not after ``patience`` seconds
    """
    deadline = time.monotonic() + patience
    while True:
        partitions = [partition for found in kafka.offsets.partitions_of(topics).values() for partition in found]
        bounds = kafka.offsets.bounds(partitions)
        committed = kafka.groups.committed([application_id])[application_id]
        behind = [
            partition
            for partition, bound in bounds.items()
            if bound.log_end_offset > bound.log_start_offset
            and (partition not in committed or committed[partition].offset < bound.log_end_offset)
        ]
        if not behind:
            return
        if time.monotonic() > deadline:
            raise TimedOut(f"{application_id} has not processed {behind[0]} within {patience:g} s", hint="see the application's log")
        time.sleep(0.2)
