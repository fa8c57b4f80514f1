"""The agent, built of this tree's sources, and small programs for it to capture."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path

from kops.config.paths import directories
from kops.gateways.machine.jars import class_path, jars_of, kafka_set
from kops.gateways.machine.jdk import require_jdk
from support import older_streams
from support.streams import JVM_OPTIONS, compiled

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "tests" / "streams" / "capture"


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
    windows = SOURCES / ("windows28" if older else "windows") / "OwnWindows.java"
    folders = [compiled(SOURCES / "ManyStores.java", version, jars, [windows])]
    if version < "4":
        folders.append(compiled(SOURCES / "Transformers.java", version, jars))
    if not older and tuple(map(int, version.split(".")[:2])) >= (3, 5):
        folders.append(compiled(SOURCES / "Versions.java", version, jars))
    return class_path(jars), class_path(folders)


def java(*arguments: str) -> list[str]:
    return [str(require_jdk().java), *JVM_OPTIONS, *arguments]


@cache
def launcher() -> str:
    """Return the class path of a launcher without Kafka Streams."""
    return str(compiled(SOURCES / "ChildLoader.java", "none", []))


@cache
def runner() -> str:
    return str(compiled(SOURCES / "EchoRunner.java", "none", []))
