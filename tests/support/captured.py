"""The agent, built of this tree's sources, and small programs for it to capture."""

from __future__ import annotations

import importlib.util
import os
import zipfile
from functools import cache
from pathlib import Path

from kops.config.paths import directories
from kops.gateways.machine.ivy import Artifact
from kops.gateways.machine.jars import KAFKA_VERSION, JarSet, class_path, jars_of, kafka_set
from kops.gateways.machine.jdk import require_jdk
from support import older_streams
from support.streams import JVM_OPTIONS, compiled

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "tests" / "streams" / "capture"
EXAMPLES = JarSet("streams-examples", KAFKA_VERSION, (Artifact("org.apache.kafka", "kafka-streams-examples", KAFKA_VERSION),))
"""Apache's own examples, with what they need."""
BOOT_LOADER = JarSet("spring-boot-loader", "3.4.1", (Artifact("org.springframework.boot", "spring-boot-loader", "3.4.1"),))
"""The launcher of Spring Boot's fat jars."""


@cache
def built_agent() -> Path:
    """Return the agent's jar; compile it when its sources have changed."""
    spec = importlib.util.spec_from_file_location("agent_jar", ROOT / "java" / "agent_jar.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Path = module.build()
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
    return [str(require_jdk().java), *JVM_OPTIONS, *map(str, arguments)]


@cache
def launcher() -> str:
    """Return the class path of a launcher without Kafka Streams."""
    return str(compiled(SOURCES / "ChildLoader.java", "none", []))


def apache_examples() -> str:
    return class_path(jars_of(EXAMPLES, directories(os.environ).cache))


def fat_jar(target: Path, version: str = KAFKA_VERSION) -> Path:
    """Pack ManyStores as Spring Boot does: jars in a jar, stored, and its launcher."""
    library, classes = programs(version)
    (loader,) = jars_of(BOOT_LOADER, directories(os.environ).cache)
    needed = ("kafka-streams-", "kafka-clients-", "rocksdbjni-", "slf4j-api-")
    main = "Main-Class: org.springframework.boot.loader.launch.JarLauncher\nStart-Class: ManyStores\n"
    with zipfile.ZipFile(target, "w") as jar, zipfile.ZipFile(loader) as own:
        jar.writestr(
            "META-INF/MANIFEST.MF",
            f"Manifest-Version: 1.0\n{main}Spring-Boot-Classes: BOOT-INF/classes/\nSpring-Boot-Lib: BOOT-INF/lib/\n\n",
        )
        for name in own.namelist():
            if name.startswith("org/"):
                jar.writestr(name, own.read(name))
        for folder in ("BOOT-INF/", "BOOT-INF/classes/", "BOOT-INF/lib/"):
            jar.writestr(folder, b"")
        for file in sorted(Path(classes).glob("*.class")):
            jar.write(file, f"BOOT-INF/classes/{file.name}")
        for file in map(Path, library.split(os.pathsep)):
            if file.name.startswith(needed) and "test-utils" not in file.name:
                jar.write(file, f"BOOT-INF/lib/{file.name}")
    return target


@cache
def runner() -> str:
    return str(compiled(SOURCES / "EchoRunner.java", "none", []))
