"""The table of docs/from-apache.yaml, and the options that Apache's tools themselves list."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from support.apache_tools import SOURCES
from support.patience import HANG_SECONDS
from support.streams import java_command

DOCS = Path(__file__).parents[2] / "docs"
PACKAGE = "org.apache.kafka.tools."
JOPT = re.compile(r"^(?:\* )?(--[\w.-]*\w)", re.MULTILINE)
"""joptsimple begins a line with an option, and marks those that are required; descriptions are indented."""
ARGPARSE = re.compile(r"^  (?:-\w(?: \S+)?, )?(--[\w.-]*\w)", re.MULTILINE)
SUBCOMMANDS = (re.compile(r"\{([\w,-]+)\}"), re.compile(r"^    ([\w-]+)(?: {2,}|$)", re.MULTILINE))
"""argparse4j lists them in braces, or under a heading; their descriptions are indented further."""
MAIN = (b"\x01\x00\x04main", b"\x01\x00\x16([Ljava/lang/String;)V")
"""What the constants of a class hold that has, or calls, a method ``main(String[])``."""


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("from_apache", DOCS / "from_apache.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FROM_APACHE = _module()


def options_of(helped: str) -> set[str]:
    """Return the options of a help text."""
    return set((ARGPARSE if helped.startswith("usage:") else JOPT).findall(helped))


def subcommands_of(helped: str) -> list[str]:
    """Return the subcommands of a help text of argparse4j; none of another's."""
    if not helped.startswith("usage:"):
        return []
    braces, listed = SUBCOMMANDS
    return found[1].split(",") if (found := braces.search(helped)) else listed.findall(helped.partition("\ncommands:\n")[2])


def programs(jars: Sequence[Path]) -> set[str]:
    """Return the classes of Apache's tools that can be started, without their package."""
    (jar,) = [jar for jar in jars if re.fullmatch(r"kafka-tools-[\d.]+\.jar", jar.name)]
    with zipfile.ZipFile(jar) as classes:
        names = [name for name in classes.namelist() if re.fullmatch(r"[\w/]+\.class", name)]
        started = [name for name in names if all(part in classes.read(name) for part in MAIN)]
    return {name.removesuffix(".class").replace("/", ".").removeprefix(PACKAGE) for name in started}


def helps(tools: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the help of each class, and of each of its subcommands, all from one JVM: class, subcommand or nothing, text."""
    command, pipe = java_command("ApacheHelp", sources=SOURCES), subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8") as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(*words: str) -> str:
            process.stdin.write("\t".join((PACKAGE + words[0], *words[1:], "--help")) + "\n")
            process.stdin.flush()
            lines = list[str]()
            while (line := process.stdout.readline()) != "END\n":
                assert line, "".join(lines)
                lines.append(line)
            return "".join(lines)

        for tool in tools:
            helped = ask(tool)
            yield tool, "", helped
            for subcommand in subcommands_of(helped):
                yield tool, subcommand, ask(tool, subcommand)
        process.stdin.close()
        process.wait(HANG_SECONDS)
