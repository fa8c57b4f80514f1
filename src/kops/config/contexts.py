"""Changes the configuration file; other contexts, comments and layout are preserved."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from kops.config import layers
from kops.config.files import read_text
from kops.config.java import write_private
from kops.config.load import ConfigFile, read_config
from kops.config.paths import Directories
from kops.config.schema import SETTINGS, Kind, check_context_name
from kops.core.errors import ConfigError, NotFound

HEADER = "# Contexts of kops: clusters, and how to reach them. Secrets are never in here, only where they are.\n\n"


def save_context(directories: Directories, name: str, table: Mapping[str, Any], *, current: bool = False) -> None:
    """Write a context, replacing one of the same name; ``None`` values are left out.

    :param table: as in the file, such as ``{"bootstrap_servers": ["host:9092"], "spark": {"master": "local[*]"}}``
    :param current: whether it becomes the current context
    :raises ConfigError: if the table has a wrong key or value; nothing is written then
    """
    check_context_name(name)
    import tomlkit

    clean = _without_none(table)
    layers.from_table(clean, f"context {name}", name, directories.config)

    def change(document: MutableMapping[str, Any]) -> None:
        contexts = document.setdefault("contexts", tomlkit.table(is_super_table=True))
        _assign(contexts.setdefault(name, {}), clean)

    _edit(directories, change, current=name if current else None)


def use_context(directories: Directories, name: str) -> None:
    """Make a context the current one.

    :raises NotFound: if there is none of this name
    """
    require_context(read_config(directories), name)
    _edit(directories, lambda _document: None, current=name)


def remove_context(directories: Directories, name: str) -> tuple[Path, ...]:
    """Remove a context, and the secret files that kops itself wrote for it; files elsewhere belong to their owner.

    :returns: the removed files
    :raises NotFound: if there is none of this name
    """
    require_context(read_config(directories), name)
    possible = [secret_file(directories, name, setting.name) for setting in SETTINGS.values() if setting.kind is Kind.SECRET]
    own = tuple(file for file in possible if file.is_file())

    def change(document: MutableMapping[str, Any]) -> None:
        del document["contexts"][name]
        if document.get("current") == name:
            del document["current"]

    _edit(directories, change)
    for file in own:
        file.unlink(missing_ok=True)
    return own


def secret_file(directories: Directories, name: str, secret: str) -> Path:
    return directories.secrets / name / secret


def write_secret(directories: Directories, name: str, secret: str, value: str) -> str:
    """Store an imported secret in a file that only this user can read, and return the path for ``<secret>_file``."""
    return str(write_private(secret_file(directories, name, secret), value + "\n"))


def require_context(file: ConfigFile, name: str) -> None:
    """Refuse the name of a context that is not in the file.

    :raises NotFound: naming those that are
    """
    if name not in file.contexts:
        known = ", ".join(sorted(file.contexts)) or "none"
        raise NotFound(f"there is no context {name!r} in {file.path}", hint=f"known contexts: {known}")


def _edit(directories: Directories, change: Callable[[MutableMapping[str, Any]], None], *, current: str | None = None) -> None:
    """Read, change and write the file as one step; the new text is parsed and checked before it replaces the file.

    :param current: the context that becomes the current one
    """
    import tomlkit

    with _locked(directories):
        expected = _plain(directories)
        change(expected)
        expected |= {"current": current} if current else {}
        path = Path(os.path.realpath(directories.config_file))  # a dotfiles repository may have linked it here
        document = tomlkit.parse(read_text(path) if path.exists() else HEADER)
        change(document)
        text = tomlkit.dumps(document)
        if current and "current" in document:
            document["current"] = current
            text = tomlkit.dumps(document)
        elif current:
            text = _with_current(text, current)
        if _present(tomlkit.parse(text).unwrap()) != _present(expected):
            raise ConfigError(f"{path} is laid out in a way that kops cannot change safely", hint="edit it by hand; nothing was changed")
        write_private(path, text)


def _with_current(text: str, name: str) -> str:
    """Put ``current`` at the top, before any table, below the comment at the head of the file if there is one."""
    lines = text.splitlines(keepends=True)
    at = next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))
    at = at + 1 if at < len(lines) and not lines[at].strip() else 0
    rest = "".join(lines[at:]).lstrip("\n")
    return "".join(lines[:at]) + f'current = "{name}"\n' + (f"\n{rest}" if rest else "")


def _present(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if value != {}}


def _plain(directories: Directories) -> dict[str, Any]:
    file = read_config(directories)
    body: dict[str, Any] = {"contexts": {name: dict(table) for name, table in file.contexts.items()}} if file.contexts else {}
    return body | ({"current": file.current} if file.current is not None else {})


@contextlib.contextmanager
def _locked(directories: Directories) -> Iterator[None]:
    """Lock the file for one change, so that two kops processes do not lose each other's changes."""
    import fcntl

    try:
        directories.config.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (directories.config / f".{directories.config_name}.lock").open("a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise ConfigError(f"cannot write {directories.config_file}: {error.strerror}") from error


def _assign(target: MutableMapping[str, Any], table: Mapping[str, Any]) -> None:
    """Make a table equal to another by changing only what differs, so that comments on the rest survive."""
    for key in [key for key in target if key not in table]:
        del target[key]
    for key, value in table.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), MutableMapping):
            _assign(target[key], value)
        elif key not in target or target[key] != value:
            target[key] = value


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: _without_none(value) if isinstance(value, Mapping) else value for key, value in table.items()}
    kept = {key: list(value) if isinstance(value, tuple) else value for key, value in kept.items()}
    return {key: value for key, value in kept.items() if value is not None and value != {}}
