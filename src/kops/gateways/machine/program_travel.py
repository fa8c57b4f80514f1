"""A program that runs on other machines: packed with the files that its command names, and unpacked where it is started.

Files keep their absolute paths below a folder, so that they lie to each other as they did. Class paths are then those of the capture, by
names and digests, which the agent compares.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kops.core.errors import KopsError, Refused
from kops.gateways.machine.agent import AGENT_JAR, RUNNER_JAR, require_agent, require_runner
from kops.gateways.machine.jdk import find_java, version_of

_PLACE = "\0"
"""Stands for the folder in what is packed: no word of a command has it."""
_PATHS = ("-cp", "-classpath", "--class-path", "-p", "--module-path")
_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_CLASS_PATH = "CLASSPATH"
_PARTS = re.compile(r"([=:,;@]|file:)")
_OF_MACHINE = re.compile(
    r"(PATH|HOME|PWD|OLDPWD|SHELL|USER|LOGNAME|HOSTNAME|TERM|SHLVL|_|TMPDIR|TMP|TEMP|JAVA_HOME|VIRTUAL_ENV|DISPLAY|MAIL"
    r"|(LD|DYLD|PYTHON|PYSPARK|SPARK|HADOOP|YARN|SSH|XDG|DBUS|KOPS)_.*|PYTHON[A-Z]*)"
)
"""Variables that say how this machine is, and not what a program does."""


@dataclass(frozen=True)
class PackedProgram:
    """What is needed to start a program on another machine.

    :param archive: path of a zip here
    :param folders: that it needs, since what unpacks a zip leaves out empty ones
    :param words: of its command, after ``java``
    :param java: major version of the Java that it was captured with; None: not known
    :param environment: variables of this machine; may hold secrets: never to be shown
    """

    archive: str
    words: tuple[str, ...]
    directory: str
    folders: tuple[str, ...]
    java: int | None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class UnpackedProgram:
    """How a program is started here.

    :param jars: the agent and the runner
    """

    command: tuple[str, ...]
    directory: str
    jars: tuple[str, str]
    environment: Mapping[str, str] = field(repr=False)


def pack(
    command: Sequence[str], directory: str, class_path: Sequence[str], archive: Path, *, java: int | None, environment: Mapping[str, str]
) -> PackedProgram:
    """Write an archive with a program's class path, the files that its command names, and kops' own jars.

    :param command: of a JVM
    :param class_path: paths of its entries, in their order
    :param environment: that it would have here
    :raises MissingRequirement: when kops was installed without its Java parts
    """
    packing = _Packing(directory, class_path)
    words = tuple(packing.words(command[1:]))
    given = {name: value for name, value in environment.items() if not _OF_MACHINE.fullmatch(name)}
    given |= {name: " ".join(packing.words(given[name].split(" "))) for name in _OPTIONS if name in given}
    given |= {_CLASS_PATH: packing.path(given[_CLASS_PATH])} if _CLASS_PATH in given else {}
    with zipfile.ZipFile(archive, "w") as content:  # jars are compressed already
        for jar in (require_agent(), require_runner()):
            content.write(jar, jar.name)
        for path in dict.fromkeys([*class_path, *packing.files]):
            for file in _files(Path(path)):
                content.write(file, str(file).lstrip("/"))
    folders = tuple(_PLACE + path for path in (directory, *class_path) if Path(path).is_dir())
    return PackedProgram(str(archive), words, _PLACE + directory, folders, java, given)


def unpacked(packed: PackedProgram, folder: str) -> UnpackedProgram:
    """Return how a packed program is started on this machine, with the Java that is here.

    :param folder: to which the archive was unpacked
    :raises MissingRequirement: when there is no Java
    :raises Refused: when it is of another major version than the program was captured with
    """
    java = find_java()
    version = version_of(java)
    if packed.java is not None and version != packed.java:
        raise Refused(f"{java} is Java {version}")
    words = [word.replace(_PLACE, folder) for word in packed.words]
    directory = packed.directory.replace(_PLACE, folder)
    for each in packed.folders:
        Path(each.replace(_PLACE, folder)).mkdir(parents=True, exist_ok=True)
    jars = str(Path(folder, AGENT_JAR.name)), str(Path(folder, RUNNER_JAR.name))
    environment = {name: value.replace(_PLACE, folder) for name, value in packed.environment.items()}
    return UnpackedProgram((str(java), *words), directory, jars, environment)


class _Packing:
    """Rewrites paths, and notes the files that are named."""

    def __init__(self, directory: str, class_path: Sequence[str]) -> None:
        self._directory, self._class_path = Path(directory), class_path
        self.files: list[str] = []

    def words(self, words: Sequence[str]) -> Iterator[str]:
        before = ""
        for word in words:
            option, is_given, value = word.partition("=")
            if before in _PATHS:
                yield self.path(word)
            elif is_given and option in _PATHS:
                yield f"{option}={self.path(value)}"
            else:
                yield "".join(map(self._part, [word] if self._is_file(word) else _PARTS.split(word)))
            before = word

    def path(self, value: str) -> str:
        """Return a class path; wildcards stand for what they did when it was captured, in that order."""
        found: list[str] = []
        for entry in value.split(os.pathsep):
            folder = os.path.normpath(self._directory / entry[:-1]) if entry == "*" or entry.endswith("/*") else None
            held = [each for each in self._class_path if folder and str(Path(each).parent) == folder and each.lower().endswith(".jar")]
            found += [_PLACE + each for each in held] if folder else [self._placed(entry)]
        return os.pathsep.join(found)

    def _part(self, text: str) -> str:
        if not self._is_file(text):
            return text
        self.files.append(os.path.normpath(self._directory / text))
        return self._placed(text)

    def _is_file(self, text: str) -> bool:
        return "/" in text and (self._directory / text).is_file()

    @staticmethod
    def _placed(path: str) -> str:
        """Return a path where the program is started: a relative one is the same there."""
        return _PLACE + os.path.normpath(path) if path.startswith("/") else path


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(each for each in path.rglob("*") if each.is_file())
    elif path.exists():
        yield path


def on_host(error: KopsError, host: str, java: int | None) -> KopsError:
    """Return an error about a worker's Java that says where that is, and which one is needed there.

    :param java: major version of the one that the program was captured with; None: not known
    """
    needed = f"has no Java {java}, with which the program was captured" if java is not None else "cannot start the program"
    return type(error)(
        f"Spark's worker on {host} {needed}: {error.message}",
        hint="install it there, and set spark.executorEnv.JAVA_HOME to its folder: in spark.conf of the context, or where the Spark Connect"
        " server is started",
    )
