"""A Kafka Streams before 3.0, without a broker: what its windows and sessions hold."""

from __future__ import annotations

import json
import os
import subprocess
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kops.config.paths import directories
from kops.gateways.machine.jars import JarSet, class_path, jars_of
from kops.gateways.machine.jdk import require_jdk
from kops.gateways.machine.maven import Artifact
from support.patience import HANG_SECONDS
from support.programs import Program, Record
from support.streams import JVM_OPTIONS, Held, Written, compiled

VERSION = "2.8.2"
_SOURCE = Path(__file__).parent.parent / "streams" / "oracle28" / "OlderWindows.java"


def older_set(version: str = VERSION) -> JarSet:
    """Describe that Kafka Streams and its test driver, or those of another version, without a broker."""
    names = ("kafka-streams", "kafka-streams-test-utils")
    return JarSet("streams", version, tuple(Artifact("org.apache.kafka", name, version) for name in names))


def older_windows(program: Program, cases: Sequence[Sequence[Record]]) -> list[tuple[Written, set[Held]]]:
    """Feed a program that counts texts in windows; return for each case what it wrote, and what its store still finds."""
    assert program.window
    jars = jars_of(older_set(), directories(os.environ).cache)
    classes = compiled(_SOURCE, VERSION, jars)
    command = [str(require_jdk().java), *JVM_OPTIONS, "-cp", class_path([*jars, classes]), _SOURCE.stem]
    feeds = [[[_text(record.key), _text(record.value), record.timestamp] for record in case] for case in cases]
    request = {**program.window.as_json(), "retention": program.window.kept, "cases": feeds}
    done = subprocess.run(command, input=json.dumps(request) + "\n", capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [_answer(program, answer) for answer in json.loads(done.stdout)]


def _answer(program: Program, answer: Any) -> tuple[Written, set[Held]]:
    changelog = tuple(Record(b64decode(key), value and b64decode(value), timestamp) for key, value, timestamp in answer["changelog"])
    return Written(program, {program.changelog: changelog}), {(key, start, end) for key, start, end in answer["held"]}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
