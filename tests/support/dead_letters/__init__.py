"""Dead letters made by the libraries' own classes, without Kafka: their headers."""

import base64
import os
import subprocess
from pathlib import Path

from kops.config.paths import directories
from kops.gateways.machine.jars import JarSet, class_path, jars_of, kafka_set
from kops.gateways.machine.jdk import require_jdk
from kops.gateways.machine.maven import Artifact

SPRING = JarSet(
    "spring-cloud-stream-binder-kafka", "4.3.1", (Artifact("org.springframework.cloud", "spring-cloud-stream-binder-kafka", "4.3.1"),)
)
"""The binder, and the spring-kafka that it stands on."""
SMALLRYE = JarSet(
    "smallrye-messaging-kafka",
    "4.31.0",
    (
        Artifact("io.smallrye.reactive", "smallrye-reactive-messaging-kafka", "4.31.0"),
        Artifact("org.eclipse.microprofile.config", "microprofile-config-api", "3.1"),
    ),
)
PROGRAMS = {
    "StreamsLetters": kafka_set(),
    "org.springframework.cloud.stream.binder.kafka.SpringLetters": SPRING,
    "SmallRyeLetters": SMALLRYE,
}
Headers = list[tuple[str, bytes]]


def made_by(program: str, folder: Path) -> dict[str, Headers]:
    """Run a program of ``PROGRAMS``; return the headers of the dead letters that it makes.

    :param folder: for its classes
    """
    jdk, jars = require_jdk(), class_path(jars_of(PROGRAMS[program], directories(os.environ).cache))
    source = Path(__file__).with_name(f"{program.rsplit('.', 1)[-1]}.java")
    subprocess.run([jdk.tool("javac"), "-cp", jars, "-d", folder, source], check=True)
    done = subprocess.run([jdk.java, "-cp", f"{folder}{os.pathsep}{jars}", program], capture_output=True, text=True, check=True)
    found: dict[str, Headers] = {}
    for line in done.stdout.splitlines():
        if line.count("\t") == 2:
            family, name, value = line.split("\t")
            found.setdefault(family, []).append((name, base64.b64decode(value)))
    return found
