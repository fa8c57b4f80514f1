"""Ask the real Java what it makes of properties files."""

import base64
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from kops.gateways.machine.jars import KAFKA_VERSION, class_path
from kops.gateways.machine.jdk import require_jdk
from support.streams import compiled

SOURCE = Path(__file__).parent / "ClientCheck.java"


def ask_java(what: str, files: Iterable[Path], jars, *options: str) -> dict[str, dict[str, str]]:
    """Return what Java says about each file, by the file's name.

    :param what: read (all properties), jaas (the options of each line), build (an admin client)
    """
    classes = compiled(SOURCE, KAFKA_VERSION, jars)
    command = [str(require_jdk().java), *options, "-cp", f"{classes}{os.pathsep}{class_path(jars)}", "ClientCheck", what]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for line in done.stdout.decode().splitlines():
        file, key, value = line.split(" ")
        answers[Path(file).name][_decode(key)] = _decode(value)
    return answers


def _decode(text: str) -> str:
    return base64.b64decode(text).decode()
