"""``kops context``: list, show, add and import contexts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from kops.config import layers
from kops.config.connection import Connection, Secret
from kops.config.contexts import require_context, save_context, secret_file, write_secret
from kops.config.layers import Layer, SourcedValue
from kops.config.load import ConfigFile, read_config
from kops.config.paths import Directories
from kops.config.schema import SETTINGS, Kind, Setting, check_context_name
from kops.config.validate import build
from kops.core.errors import ConfigError, NotFound, Refused
from kops.core.secret_shapes import is_secret_name, without_secrets

Row = dict[str, Any]


@dataclass(frozen=True)
class SavedContext:
    """The outcome of saving a context.

    :param notes: sentences for the user
    """

    name: str
    file: Path
    current: bool
    notes: tuple[str, ...]

    def as_json(self) -> Row:
        return {"name": self.name, "file": str(self.file), "current": self.current, "notes": list(self.notes)}


def list_contexts(directories: Directories) -> list[Row]:
    """Return one row per context; an invalid context has a ``problem`` and does not hide the others."""
    file = read_config(directories)
    rows = []
    for name, table in file.contexts.items():
        layer, problem = _layer_or_problem(file, name)
        row: Row = {"name": name, "current": name == file.current}
        row["bootstrap_servers"] = list(_value(layer, "bootstrap_servers", ()))
        row["security_protocol"] = _value(layer, "security_protocol", "PLAINTEXT")
        row["sasl_mechanism"] = _value(layer, "sasl_mechanism", None)
        row["protected"] = bool(_value(layer, "protected", table.get("protected") is True))
        row["read_only"] = bool(_value(layer, "read_only", table.get("read_only") is True))
        rows.append({**row, "problem": problem})
    return rows


def show_context(directories: Directories, name: str | None = None) -> Row:
    """Return a context as stored in the file.

    :param name: the current one when None
    :raises NotFound: when it does not exist
    """
    file = read_config(directories)
    chosen = name or file.current
    if not chosen:
        raise NotFound("there is no current context", hint="choose one with kops context use NAME, or pass its name")
    require_context(file, chosen)
    layer = file.layer(chosen)
    rows = [_row(key, _setting(key), sourced.value, str(file.path)) for key, sourced in layer.items()]
    return {"name": chosen, "current": chosen == file.current, "file": str(file.path), "settings": rows}


def show_resolved(connection: Connection) -> Row:
    """Return every setting of a connection with its origin."""
    rows = []
    for setting in SETTINGS.values():
        value = attrgetter(setting.field)(connection)
        if setting.kind is Kind.TABLE:
            for key, one in value.items():
                name = f"{setting.name}.{key}"
                rows.append(_row(name, setting, one, connection.sources.get(name, "default")))
        elif value not in (None, ()):
            rows.append(_row(setting.name, setting, value, connection.sources.get(setting.name, "default")))
    return {"name": connection.name or None, "settings": rows, "warnings": list(connection.warnings)}


def add_context(
    directories: Directories,
    environ: Mapping[str, str],
    name: str,
    table: Mapping[str, Any],
    *,
    current: bool,
    replace: bool,
    prove: Callable[[Connection], None],
) -> SavedContext:
    """Save a context after checking that its settings fit together, and that it works.

    :param table: keys as in the file
    :param prove: refuses a connection that does not work, before anything is saved
    :raises Refused: when the name is in use and ``replace`` is not set
    :raises ConfigError: when settings are missing or contradictory
    """
    _refuse_existing(directories, name, replace=replace)
    layer = layers.from_table(table, f"context {name}", name, Path.cwd())
    connection = _checked(layer, name, environ)
    prove(connection)
    save_context(directories, name, table, current=current or _is_first(directories))
    return _saved(directories, name, connection.warnings)


def import_context(
    directories: Directories,
    environ: Mapping[str, str],
    name: str,
    file: Path,
    *,
    bootstrap_servers: Sequence[str] = (),
    current: bool,
    replace: bool,
    prove: Callable[[Connection], None],
) -> SavedContext:
    """Create a context from a Java ``client.properties``. Secrets in it go into files that only this user can read.

    :param bootstrap_servers: for files that name no brokers
    :param prove: refuses a connection that does not work, before anything is saved
    :raises Refused: when the name is in use and ``replace`` is not set
    :raises ConfigError: when kops does not support what the file asks for
    """
    from kops.config.java_import import read_client_properties

    _refuse_existing(directories, name, replace=replace)
    found = read_client_properties(file)
    layer = found.layer(str(file))
    if bootstrap_servers:
        layer["bootstrap_servers"] = SourcedValue(tuple(bootstrap_servers), "flag")
    if "bootstrap_servers" not in layer:
        raise ConfigError(f"{file} names no brokers", hint="add --bootstrap-servers host:9092")
    connection = _checked(layer, name, environ)
    prove(connection)
    table: dict[str, Any] = {}
    for key, sourced in layer.items():
        if key.startswith("client."):
            table.setdefault("client", {})[key.removeprefix("client.")] = sourced.value
        elif not isinstance(sourced.value, Secret):
            table[key] = list(sourced.value) if isinstance(sourced.value, tuple) else sourced.value
    kept = []
    for secret, value in found.secrets.items():
        table[f"{secret}_file"] = write_secret(directories, name, secret, value)
        kept.append(f"the {secret.replace('_', ' ')} is kept in {secret_file(directories, name, secret)}")
    save_context(directories, name, table, current=current or _is_first(directories))
    return _saved(directories, name, (*found.notes, *connection.warnings, *kept))


def _refuse_existing(directories: Directories, name: str, *, replace: bool) -> None:
    check_context_name(name)
    if not replace and name in read_config(directories).contexts:
        raise Refused(f"context {name} exists already", hint="pass --replace, or use another name")


def _checked(layer: Layer, name: str, environ: Mapping[str, str]) -> Connection:
    if "bootstrap_servers" not in layer:
        raise ConfigError(f"context {name} has no brokers", hint="add --bootstrap-servers host:9092")
    return build(layer, name, environ)


def _is_first(directories: Directories) -> bool:
    file = read_config(directories)
    return not file.contexts and file.current is None


def _saved(directories: Directories, name: str, notes: Sequence[str]) -> SavedContext:
    file = read_config(directories)
    return SavedContext(name, file.path, file.current == name, tuple(notes))


def _layer_or_problem(file: ConfigFile, name: str) -> tuple[Layer, str | None]:
    try:
        layer = file.layer(name)
        _checked(layer, name, {})
        return layer, None
    except ConfigError as error:
        return {}, error.message.removeprefix(f"{file.path}: ")


def _value(layer: Layer, key: str, default: Any) -> Any:
    return layer[key].value if key in layer else default


def _setting(key: str) -> Setting:
    if key in SETTINGS:
        return SETTINGS[key]
    return SETTINGS["client" if key.startswith("client.") else "spark.conf"]


def _row(name: str, setting: Setting, value: Any, source: str) -> Row:
    return {"setting": name, "value": _shown(name, setting, value), "source": source}


def _shown(name: str, setting: Setting, value: Any) -> Any:
    if isinstance(value, layers.SecretReference):
        return str(value.open({}))
    if isinstance(value, Secret):
        return str(value)
    if setting.kind is Kind.TABLE and name not in SETTINGS and is_secret_name(name):
        return "(set)"
    if setting.name == "oauth_token_command":
        return f"(set, from command {value.split(maxsplit=1)[0]})"
    if setting.kind is Kind.LIST:
        return [_without_login(one) for one in value]
    return _without_login(value) if isinstance(value, str) else value


def _without_login(text: str) -> str:
    return re.sub(r"//[^/@\s]*@", "//***@", without_secrets(text))
