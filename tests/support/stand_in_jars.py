"""Jars in place of kops' own Java parts, for tests that never start a JVM."""

import zipfile
from pathlib import Path

import pytest

from kops.gateways.machine import agent, made_of


def write_jar(jar: Path, carried: str | None) -> None:
    """Write a jar.

    :param carried: what it says it is made of
    """
    with zipfile.ZipFile(jar, "w") as archive:
        if carried is not None:
            archive.writestr(made_of.ENTRY, carried)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let kops find jars in a folder that belong to it, and are empty; return that of the agent."""
    for part, name in ((made_of.RUNNER, "RUNNER_JAR"), (made_of.AGENT, "AGENT_JAR")):
        jar = folder / f"kops-{part}.jar"
        write_jar(jar, made_of.expected_stamp(part))
        monkeypatch.setattr(agent, name, jar)
    return jar
