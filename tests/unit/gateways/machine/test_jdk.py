import os
from pathlib import Path

import pytest

from kops.core.errors import MissingRequirement
from kops.gateways.machine import jdk


def fake_jdk(folder: Path, version: str, *tools: str) -> Path:
    """Make a JDK that only tells its version."""
    for tool in ("java", *tools):
        program = folder / "bin" / tool
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
        program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea"', 25),
        ("Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n" + 'openjdk version "11.0.2"', 11),
        ("command not found", 0),
    ],
)
def test_parse_version(text, version):
    assert jdk.parse_version(text) == version


def test_java_home_comes_before_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(fake_jdk(tmp_path / "path", "17.0.1") / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(fake_jdk(tmp_path / "home", "21.0.1", "javac")))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path' / 'bin'}{os.pathsep}/bin{os.pathsep}/usr/bin")
    found = jdk.require_jdk()
    assert (found.version, found.java) == (21, tmp_path / "home" / "bin" / "java")
    assert found.tool("javac") == tmp_path / "home" / "bin" / "javac"


def test_missing_java(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingRequirement, match="no java on the PATH") as missing:
        jdk.require_jdk()
    assert "install a JDK 17" in missing.value.hint


def test_java_home_without_java(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingRequirement, match=f"JAVA_HOME is {tmp_path}"):
        jdk.require_jdk()


def test_old_java_is_rejected(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_jdk(tmp_path, "11.0.2")))
    with pytest.raises(MissingRequirement, match="is Java 11, and 17 or newer is needed"):
        jdk.require_jdk()


def test_jre_without_compiler_is_rejected(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_jdk(tmp_path, "17.0.1")))
    with pytest.raises(MissingRequirement, match="no javac"):
        jdk.require_jdk().tool("javac")
