"""YAML files that declare topics, read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kops.config.yaml_files import read_documents
from kops.core.errors import ConfigError
from kops.core.topics.file import Declaration, parse_declaration

SUFFIXES = (".yaml", ".yml")


def read_declaration(paths: Sequence[str], *, also_known: Callable[[], set[str]] = set) -> Declaration:
    """Read files, and those with the suffixes of YAML anywhere under directories.

    :param also_known: see ``parse_declaration``
    :raises ConfigError: naming the file, and the field or line
    """
    files = list(dict.fromkeys(file for path in paths for file in files_at(Path(path))))
    found = [document for file in files for document in documents(file)]
    if not found:
        raise ConfigError(f"{', '.join(paths)}: no topic is declared", hint="a document is like: name: orders")
    return parse_declaration(found, also_known=also_known)


def files_at(path: Path, suffixes: Sequence[str] = SUFFIXES) -> list[Path]:
    """Return a file, or the files with some suffixes anywhere under a directory.

    :raises ConfigError: when a directory has none
    """
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix in suffixes and file.is_file())
    if not found:
        raise ConfigError(f"{path} has no files that end in {' or '.join(suffixes)}", hint="name a file, or another directory")
    return found


def documents(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield the documents of a YAML file, each with its place for messages.

    :raises ConfigError: naming the file and the line
    """
    bodies = read_documents(file, hint="name YAML files or directories of them")
    for number, body in enumerate(bodies, 1):
        if body is not None:  # what a separator at the end leaves
            yield (f"{file}, document {number}" if len(bodies) > 1 else str(file)), body
