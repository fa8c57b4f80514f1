"""Reading files that declare connectors, and comparing them with the actual connectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kops.config.files import read_bytes, read_json
from kops.config.properties import read_properties
from kops.config.yaml_files import placed_documents
from kops.core.connect.files import CLASS, Declaration, DeclaredConnector, parse_declaration
from kops.core.connect.models import RUNNING, Connector, own_config
from kops.core.connect.secrets import is_masked, masked
from kops.core.errors import ConfigError, UsageProblem
from kops.core.secret_shapes import HIDDEN
from kops.core.selection import names_owned
from kops.operations.connect.describe import password_settings
from kops.operations.connect.select import by_name
from kops.operations.services import Services
from kops.operations.topics.declared import files_at

PROPERTIES = ".properties"
SUFFIXES = (".yaml", ".yml", ".json", PROPERTIES)
CREATE, CHANGE, DELETE = "create", "update", "delete"


@dataclass(frozen=True)
class ConnectorChange:
    """A connector and its intended configuration.

    :param actual: the current connector; None: it does not exist
    :param config: the intended configuration; None: delete it
    :param file: where its secrets can be read again; empty if they are in no file
    :param passwords: settings that the plugin declares as secrets
    :param state: the initial state of a new connector
    """

    name: str
    actual: Connector | None
    config: Mapping[str, str] | None
    file: str = ""
    passwords: frozenset[str] = frozenset()
    state: str = RUNNING

    @property
    def action(self) -> str:
        return DELETE if self.config is None else CREATE if self.actual is None else CHANGE


@dataclass(frozen=True)
class ConnectorComparison:
    """Declared connectors compared with those on the workers.

    :param changes: what would bring them in line
    """

    declaration: Declaration
    changes: tuple[ConnectorChange, ...]


def read_declaration(paths: Sequence[str]) -> Declaration:
    """Read files, and all YAML and JSON files and connectors' properties below directories.

    :raises ConfigError: naming the file, and the setting or line
    """
    files = list(
        dict.fromkeys(file for path in map(Path, paths) for file in files_at(path, SUFFIXES) if file == path or _may_declare(file))
    )
    found = [(str(file.resolve()), place, body) for file in files for place, body in _documents(file)]
    if not found:
        raise ConfigError(f"{', '.join(paths)}: no connector is declared", hint="a document has name and config, as Connect takes it")
    return parse_declaration(found)


def _may_declare(file: Path) -> bool:
    """Whether a file of a directory can be a connector's: other properties there are a worker's, or secrets that references lead to."""
    return file.suffix != PROPERTIES or CLASS.encode() in read_bytes(file)


def _documents(file: Path) -> Iterator[tuple[str, Any]]:
    if file.suffix == PROPERTIES:
        yield str(file), read_properties(file, hint="name files or directories of them")
        return
    if file.suffix != ".json":
        yield from placed_documents(file)
        return
    body = read_json(file, hint="name files or directories of them", as_written=True)
    for number, one in enumerate(body if isinstance(body, list) else [body], 1):
        yield (f"{file}, element {number}" if isinstance(body, list) else str(file)), one


def compare_files(services: Services, paths: Sequence[str], *, prune: bool = False) -> ConnectorComparison:
    """Compare declared connectors with actual ones: one request for all connectors, and one per plugin that differs.

    :param prune: also find connectors that the files own and do not declare
    :raises ConfigError: naming file and setting
    :raises UsageProblem: for ``prune`` when the files own no names
    """
    declaration = read_declaration(paths)
    if prune and not declaration.owns:
        raise UsageProblem("--prune needs to know which names belong to the files", hint="add a document such as owns: [shop-*]")
    found = by_name(services)
    declared = {one.name: one for one in declaration.connectors}
    names = [name for name, one in declared.items() if not _as_declared(services, one, found.get(name))]
    names += _undeclared(declaration, list(found)) if prune else []
    return ConnectorComparison(declaration, tuple(_change(services, name, declared.get(name), found.get(name)) for name in names))


def _as_declared(services: Services, declared: DeclaredConnector, actual: Connector | None) -> bool:
    """Whether a connector is as its file says; a secret that an export has hidden there is taken to be the connector's.

    :raises ConfigError: when something else differs: Connect would get the asterisks
    """
    config = own_config(actual.config) if actual is not None else None
    hidden = [name for name, value in declared.config.items() if HIDDEN in value]
    if not hidden:
        return config == dict(declared.config)
    if config is not None and masked(config, password_settings(services, config)) == dict(declared.config):
        return True
    raise ConfigError(
        f"{declared.place}: {hidden[0]} of connector {declared.name} is hidden in the file, and the connector has to be "
        f"{'changed' if config is not None else 'created'}",
        hint="replace the asterisks by a reference such as ${file:/path:key}",
        file=declared.place,
        field=hidden[0],
    )


def _change(services: Services, name: str, wanted: DeclaredConnector | None, actual: Connector | None) -> ConnectorChange:
    secrets = frozenset[str]().union(*(password_settings(services, one.config) for one in (wanted, actual) if one is not None))
    if wanted is None:
        return ConnectorChange(name, actual, None, passwords=secrets)
    return ConnectorChange(name, actual, wanted.config, wanted.file, secrets)


def _undeclared(declaration: Declaration, names: Sequence[str]) -> list[str]:
    declared = {one.name for one in declaration.connectors}
    return sorted(names_owned(declaration.owns, names) - declared)


def difference_rows(comparison: ConnectorComparison) -> list[dict[str, Any]]:
    """Return a row per setting that differs, and per connector that does not exist or would be deleted; secrets hidden."""
    rows = []
    for change in comparison.changes:
        row = {"connector": change.name, "setting": None, "actual": None, "declared": None, "action": change.action}
        if change.config is None or change.actual is None:
            rows.append(row)
            continue
        before, after = changed_settings(own_config(change.actual.config), change.config, change.passwords)
        rows += [{**row, "setting": key, "actual": before.get(key), "declared": after.get(key)} for key in {**before, **after}]
    return rows


def changed_settings(
    before: Mapping[str, str], after: Mapping[str, str], passwords: frozenset[str]
) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """Return the settings that differ, before and after; secrets are hidden, but shown to differ."""
    left, right = masked(before, passwords), masked(after, passwords)
    names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
    old: dict[str, str | None] = {name: left.get(name) for name in names}
    new: dict[str, str | None] = {name: right.get(name) for name in names}
    for name in names:
        if old[name] is not None and old[name] == new[name] and is_masked(name, after, passwords):
            new[name] = f"{new[name]} (another)"
    return old, new
