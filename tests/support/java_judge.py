"""The Java classes that everybody uses, in one JVM, as the judge of what kops reads: ``tests/differential/java``.

A family of cases is a Java class there (``Judge.Family``) and a module of tests beside it, which generates cases from ``random_of``.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import pytest

from kops.config.paths import directories
from kops.gateways.machine.jars import JarSet, jars_of
from kops.gateways.machine.maven import Artifact
from support.patience import HANG_SECONDS
from support.streams import java_command

T = TypeVar("T")
SOURCES = Path(__file__).parent.parent / "differential" / "java"
JUDGE = JarSet(
    "java-judge",
    "2",
    (
        Artifact("org.apache.avro", "avro", "1.12.1"),
        Artifact("com.google.protobuf", "protobuf-java", "4.33.2"),
        Artifact("com.google.protobuf", "protobuf-java-util", "4.33.2"),
        Artifact("org.snakeyaml", "snakeyaml-engine", "3.0.1"),
    ),
)
"""Beside Apache Kafka's jars, which hold Jackson."""
COUNTS = (300, pytest.param(20_000, marks=pytest.mark.long))
"""How many cases of a family ``make test`` reads, and ``make test-long``."""
AT_ONCE = 500
SERIES = os.environ.get("KOPS_TEST_SEED", "1")


class Judge:
    """A context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._errors: Any = None

    def __enter__(self) -> Judge:
        jars = jars_of(JUDGE, directories(os.environ).cache)
        command = java_command("Judge", sources=SOURCES, also=sorted(SOURCES.glob("*.java")), jars=jars)
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, encoding="utf-8")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process is not None
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(HANG_SECONDS)
        self._errors.close()

    def ask(self, family: str, cases: Sequence[Any]) -> list[dict[str, Any]]:
        """Return what Java says of each case: ``{"ok": ...}``, or ``{"error": ...}`` where it refuses it.

        :param cases: what JSON can hold, and the family expects
        """
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"family": family, "cases": list(cases)}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise RuntimeError(f"the judge has ended: {self._errors.read()}")
        answers: list[dict[str, Any]] = json.loads(line)
        return answers


def random_of(family: str, count: int) -> Iterator[random.Random]:
    """Yield a source of randomness for each case: the same in every run, unless ``KOPS_TEST_SEED`` names another series."""
    return (random.Random(f"{family} {SERIES} {number}") for number in range(count))


def portions(cases: Iterator[T]) -> Iterator[list[T]]:
    """Yield cases in lists of a size that one line to the judge may have."""
    portion: list[T] = []
    for each in cases:
        portion.append(each)
        if len(portion) == AT_ONCE:
            yield portion
            portion = []
    if portion:
        yield portion


def text_of_units(digits: str) -> str:
    """Return the text that ``Judge.units`` wrote; surrogates without their pair stay as they are."""
    return bytes.fromhex(digits).decode("utf-16-be", "surrogatepass")


@pytest.fixture(scope="session")
def java_judge(jdk):
    """The judge, one process for the whole run."""
    with Judge() as running:
        yield running
