"""The agent, built of this tree's sources, and small programs for it to capture."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kops.config.paths import directories
from kops.gateways.machine.jars import CONNECT_VERSION, KAFKA_VERSION, JarSet, class_path, jars_of, kafka_set
from kops.gateways.machine.jdk import require_jdk
from kops.gateways.machine.maven import Artifact
from support import older_streams
from support.streams import JVM_OPTIONS, compiled, java_with

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "tests" / "streams" / "capture"
EXAMPLES = JarSet(
    "streams-examples",
    KAFKA_VERSION,
    (
        Artifact("org.apache.kafka", "kafka-streams-examples", CONNECT_VERSION),
        *(Artifact("org.apache.kafka", name, KAFKA_VERSION) for name in ("kafka-streams", "connect-json")),
    ),
)
"""Apache's own examples, with what they need; the registries have them up to the release of the connectors."""
BOOT_LOADER = JarSet("spring-boot-loader", "3.4.1", (Artifact("org.springframework.boot", "spring-boot-loader", "3.4.1"),))
"""The launcher of Spring Boot's fat jars."""
METRICS = JarSet("metrics-agent", "1.0.1", (Artifact("io.prometheus.jmx", "jmx_prometheus_javaagent", "1.0.1"),))
"""The agent that serves metrics at a port."""
QUARKUS = JarSet("quarkus-bootstrap-runner", "3.15.1", (Artifact("io.quarkus", "quarkus-bootstrap-runner", "3.15.1"),))
"""The launcher of Quarkus' applications."""
NEEDED = ("kafka-streams-", "kafka-clients-", "rocksdbjni-", "slf4j-api-")
"""The jars that a program with Kafka Streams needs at least."""


@cache
def built_agent() -> Path:
    """Return the agent's jar, with the runner's beside it; compile them when their sources have changed."""
    spec = importlib.util.spec_from_file_location("agent_jar", ROOT / "java" / "agent_jar.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Path = module.build()
    module.build_runner()
    return made


@cache
def programs(version: str) -> tuple[str, str]:
    """Return the class paths of Kafka Streams in a version, and of the programs compiled with it."""
    cache_directory = directories(os.environ).cache
    older = version == older_streams.VERSION
    jars = jars_of(older_streams.older_set() if older else kafka_set(version), cache_directory)
    line = tuple(map(int, version.split(".")[:2]))
    also = [SOURCES / ("windows28" if older else "windows") / "OwnWindows.java"]
    also += [SOURCES / "Transformers.java"] * (line < (4, 0))
    also += [SOURCES / "Versions.java"] * (line >= (3, 5))
    return class_path(jars), str(compiled(SOURCES / "ManyStores.java", version, jars, also))


def java(*arguments: str | Path) -> list[str]:
    words = [*map(str, arguments)]
    if "-cp" not in words:
        return [str(require_jdk().java), *JVM_OPTIONS, *words]
    at = words.index("-cp")
    return [*java_with(words[at + 1], [*JVM_OPTIONS, *words[:at]]), *words[at + 2 :]]


@cache
def launcher() -> str:
    """Return the class path of a launcher without Kafka Streams."""
    return str(compiled(SOURCES / "ChildLoader.java", "none", []))


def apache_examples() -> str:
    return class_path(jars_of(EXAMPLES, directories(os.environ).cache))


def metrics_agent() -> Path:
    (jar,) = jars_of(METRICS, directories(os.environ).cache)
    return jar


def fat_jar(target: Path, version: str = KAFKA_VERSION) -> Path:
    """Pack ManyStores as Spring Boot does."""
    library, classes = programs(version)
    return spring_jar(target, Path(classes), _needed(library), "ManyStores")


def spring_jar(target: Path, classes: Path, jars: Sequence[Path], main: str) -> Path:
    """Pack a program as Spring Boot does: jars in a jar, stored, and its launcher."""
    (loader,) = jars_of(BOOT_LOADER, directories(os.environ).cache)
    launched = f"Main-Class: org.springframework.boot.loader.launch.JarLauncher\nStart-Class: {main}\n"
    with zipfile.ZipFile(target, "w") as jar, zipfile.ZipFile(loader) as own:
        jar.writestr(
            "META-INF/MANIFEST.MF",
            f"Manifest-Version: 1.0\n{launched}Spring-Boot-Classes: BOOT-INF/classes/\nSpring-Boot-Lib: BOOT-INF/lib/\n\n",
        )
        for name in own.namelist():
            if name.startswith("org/"):
                jar.writestr(name, own.read(name))
        for folder in ("BOOT-INF/", "BOOT-INF/classes/", "BOOT-INF/lib/"):
            jar.writestr(folder, b"")
        for file in sorted(classes.glob("*.class")):
            jar.write(file, f"BOOT-INF/classes/{file.name}")
        for file in jars:
            jar.write(file, f"BOOT-INF/lib/{file.name}")
    return target


def _needed(library: str) -> list[Path]:
    return [file for file in map(Path, library.split(os.pathsep)) if file.name.startswith(NEEDED) and "test-utils" not in file.name]


def thin_jar(target: Path, *, class_path: Sequence[Path] = (), main: str = "ManyStores", classes: Path | None = None) -> Path:
    """Pack a program into a jar that names in its manifest what else it needs.

    :param class_path: those files
    :param classes: the program's own, in it
    """
    with zipfile.ZipFile(target, "w") as jar:
        lines = ["Manifest-Version: 1.0", f"Main-Class: {main}"]
        if class_path:  # a line that begins with a blank continues the one before it, which may have 72 bytes
            words = "Class-Path: " + " ".join(file.as_uri() for file in class_path)
            lines += [words[:70], *(f" {words[at : at + 69]}" for at in range(70, len(words), 69))]
        jar.writestr("META-INF/MANIFEST.MF", "\n".join([*lines, "", ""]))
        for file in sorted(classes.glob("*.class")) if classes else ():
            jar.write(file, file.name)
    return target


def manifest_jar(target: Path) -> Path:
    """Pack ManyStores as build tools do by default: its classes, and the other jars named in the manifest."""
    library, classes = programs(KAFKA_VERSION)
    return thin_jar(target, class_path=_needed(library), classes=Path(classes))


def many_in_quarkus(folder: Path) -> Path:
    library, classes = programs(KAFKA_VERSION)
    return quarkus_app(folder, Path(classes), _needed(library), "ManyStores")


def quarkus_app(folder: Path, classes: Path, jars: Sequence[Path], main: str) -> Path:
    """Lay a program out as Quarkus does: jars in folders, an index of them, and its launcher."""
    runner_jars = jars_of(QUARKUS, directories(os.environ).cache)
    for name in ("lib/boot", "lib/main", "app"):
        (folder / name).mkdir(parents=True)
    boot = [Path(shutil.copy(jar, folder / "lib" / "boot")) for jar in runner_jars]
    for jar in jars:
        shutil.copy(jar, folder / "lib" / "main")
    thin_jar(folder / "app" / "app.jar", classes=classes)
    index = compiled(SOURCES / "QuarkusIndex.java", QUARKUS.version, runner_jars)
    subprocess.run(java("-cp", class_path([*runner_jars, index]), "QuarkusIndex", folder, main), check=True)
    return thin_jar(folder / "quarkus-run.jar", class_path=boot, main="io.quarkus.bootstrap.runner.QuarkusEntryPoint")
