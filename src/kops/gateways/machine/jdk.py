"""The Java of this machine: ``JAVA_HOME`` first, then the ``PATH``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kops.core.errors import MissingRequirement

MINIMUM_VERSION = 17
"""Kafka's brokers need 17 since 4.0 (KIP-1013); PySpark 4 needs 17 as well."""

FOR_A_SHORT_RUN = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options for a short-lived or idle JVM: faster start and less memory, at the cost of peak speed."""

_INSTALL = f"install a JDK {MINIMUM_VERSION} or newer (apt install default-jdk-headless, brew install openjdk), or point JAVA_HOME at one"


@dataclass(frozen=True)
class Jdk:
    """A Java found on this machine.

    :param java: path of the ``java`` program
    :param version: major version: 17, 21
    """

    java: Path
    version: int

    def tool(self, name: str) -> Path:
        """Return the path of another program of the same JDK: ``javac``, ``keytool``.

        :raises MissingRequirement: when there is none: a JRE, not a JDK
        """
        beside = self.java.resolve().parent / name
        found = beside if beside.exists() else _on_path(name) if not os.environ.get("JAVA_HOME") else None
        if found is None:
            raise MissingRequirement(f"there is no {name} next to {self.java}: this is a JRE, a JDK is needed", hint=_INSTALL)
        return found


def find_java() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise MissingRequirement(f"JAVA_HOME is {home}, but there is no bin/java in it", hint=f"unset JAVA_HOME, or {_INSTALL}")
        return java
    found = _on_path("java")
    if found is None:
        raise MissingRequirement("there is no java on the PATH, and JAVA_HOME is not set", hint=_INSTALL)
    return found


def require_jdk() -> Jdk:
    """Return the Java of this machine if it is recent enough.

    :raises MissingRequirement: no Java, one that does not start, or one that is too old
    """
    java = find_java()
    version = version_of(java)
    if version < MINIMUM_VERSION:
        raise MissingRequirement(
            f"{java} is Java {version or 'of an unknown version'}, and {MINIMUM_VERSION} or newer is needed", hint=_INSTALL
        )
    return Jdk(java, version)


@cache
def version_of(java: Path) -> int:
    """Return a Java's major version; asked once a process, since it starts a JVM.

    :raises MissingRequirement: when it does not start
    """
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as broken:
        raise MissingRequirement(f"{java} does not start: {broken}", hint=_INSTALL) from broken
    return parse_version(answer.stderr + answer.stdout)


def parse_version(text: str) -> int:
    """Parse the major version from ``java -version``: 8 for "1.8.0_402", 17 for "17.0.15"; 0 if there is none."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else 0


def _on_path(name: str) -> Path | None:
    found = shutil.which(name, path=os.environ.get("PATH", os.defpath))
    return Path(found) if found else None
