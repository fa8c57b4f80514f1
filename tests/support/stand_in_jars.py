"""Jars in place of kops' own Java parts, for tests that never start a JVM."""

import zipfile
from pathlib import Path

import pytest

from kops.gateways.machine import agent, jar_stamps


def write_jar(jar: Path, carried: str | None) -> None:
    """Write a jar.

    :param carried: what it says it is made of
    """
    with zipfile.ZipFile(jar, "w") as archive:
        if carried is not None:
            archive.writestr(jar_stamps.ENTRY, carried)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let kops find jars in a folder that belong to it, and are empty; return that of the agent."""
    for part, name in ((jar_stamps.RUNNER, "RUNNER_JAR"), (jar_stamps.AGENT, "AGENT_JAR")):
        jar = folder / f"kops-{part}.jar"
        write_jar(jar, jar_stamps.expected_stamp(part))
        monkeypatch.setattr(agent, name, jar)
    return jar
