"""From files, environment and flags to one :class:`~kops.config.connection.Connection`.

Precedence, the strongest first; each setting is resolved on its own:

1. ``-B/--bootstrap-server`` and ``-X name=value``
2. ``--command-config FILE``, a Java ``client.properties``
3. ``KOPS_<SETTING>``: ``KOPS_BOOTSTRAP_SERVERS``, ``KOPS_SECURITY_PROTOCOL``, ``KOPS_PASSWORD`` (or ``_FILE``, ``_COMMAND``) ...
4. the context named by ``-c/--context``, otherwise by ``KOPS_CONTEXT``
5. if neither names one: the file's ``current`` context, but only if nothing above names brokers
6. the defaults

Rule 5: brokers given by hand are another cluster than the current context's. Neither its password nor its Connect and
registry addresses belong to them, so nothing is taken from it; name it with ``-c`` to take the rest from it.
``protected`` and ``read_only`` can be switched on by a stronger source, never off. Without brokers there is an error, never
a silent localhost: at once, or if only ``KOPS_CONNECT_URLS`` or ``KOPS_REGISTRY_URL`` is given, as soon as brokers are needed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kops.config import layers
from kops.config.connection import Connection
from kops.config.files import is_absent, read_text
from kops.config.layers import Layer, SourcedValue
from kops.config.paths import Directories
from kops.config.schema import SETTINGS, check_context_name, nearest
from kops.config.validate import build
from kops.core.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_WITHOUT_BROKERS = {"connect_urls", "registry_url"}
"""One of these is enough for commands that need no brokers."""


@dataclass(frozen=True)
class ConfigFile:
    """The configuration file; empty if there is none.

    :param contexts: the unchecked tables; each is checked only when used, so that a mistake in one affects only that one
    """

    path: Path
    current: str | None = None
    contexts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def layer(self, name: str) -> Layer:
        """Return the settings of one context.

        :raises ConfigError: if it does not exist, or has a wrong key or value
        """
        if name not in self.contexts:
            known = ", ".join(sorted(self.contexts)) or "none"
            hint = nearest(name, self.contexts) or f"known contexts: {known}; kops context add {name} makes it"
            raise ConfigError(f"there is no context {name!r} in {self.path}", hint=hint)
        prefix = f"{self.path}: contexts.{name}"
        return layers.from_table(self.contexts[name], prefix, f"context {name}", self.path.parent)


def read_config(directories: Directories) -> ConfigFile:
    """Read the configuration file.

    :raises ConfigError: if it cannot be read, is not valid TOML, or has an unknown key at its top level
    """
    path = directories.config_file
    try:
        text = read_text(path)
    except ConfigError as error:
        if is_absent(error):
            return ConfigFile(path)
        raise
    try:
        body = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is not TOML that can be read: it is nested too deeply") from error
    except ValueError as error:  # a number of more digits than Python converts
        raise ConfigError(f"{path} is not TOML that can be read: {error}") from error
    for key in body:
        if key not in {"current", "contexts"}:
            raise ConfigError(f"{path}: {key}: there is no such setting", hint=nearest(key, ["current", "contexts"]))
    current, contexts = body.get("current"), body.get("contexts", {})
    if current is not None and not isinstance(current, str):
        raise ConfigError(f"{path}: current must be the name of a context")
    if not isinstance(contexts, dict) or not all(isinstance(table, dict) for table in contexts.values()):
        raise ConfigError(f"{path}: contexts must hold one table per context", hint='[contexts.prod]\nbootstrap_servers = ["host:9092"]')
    for name in contexts:
        check_context_name(name)
    return ConfigFile(path, current, contexts)


def resolve(
    directories: Directories,
    environ: Mapping[str, str],
    context: str | None = None,
    bootstrap_servers: str | None = None,
    *,
    properties: Iterable[str] = (),
    command_config: str | Path | None = None,
) -> Connection:
    """Resolve every setting by the precedence above. Secrets are located but not read.

    :param context: value of ``-c``
    :param bootstrap_servers: value of ``-B``, separated by commas
    :param properties: values of ``-X``, each ``name=value``
    :param command_config: value of ``--command-config``
    :raises ConfigError: if a source has a mistake, or none names brokers, Connect or a registry
    """
    flags: Layer = {}
    if bootstrap_servers is not None:
        servers = tuple(one.strip() for one in bootstrap_servers.split(",") if one.strip())
        flags["bootstrap_servers"] = SourcedValue(servers, "flag --bootstrap-server")
    strong = [flags, layers.from_properties(properties)]
    warnings: list[str] = []
    if command_config is not None:
        from kops.config.java_import import read_client_properties

        imported = read_client_properties(Path(command_config).expanduser())
        strong.append(imported.layer(f"file {command_config}"))
        warnings += imported.notes
    environment = layers.from_environment(environ)
    strong.append(environment)

    file = read_config(directories)
    named = context or environ.get("KOPS_CONTEXT") or None
    named_by_hand = any("bootstrap_servers" in layer for layer in strong)
    name = named or (None if named_by_hand else file.current)
    weak = file.layer(name) if name else {}
    if context and "bootstrap_servers" in environment and "bootstrap_servers" in weak:
        warnings.append(f"KOPS_BOOTSTRAP_SERVERS is set and stronger than the brokers of context {context}")
    merged = layers.merge([*strong, weak])
    if "bootstrap_servers" not in merged and (name or not _WITHOUT_BROKERS & merged.keys()):
        raise _no_brokers(file, name, environ)
    return build(merged, name or "", environ, config_file=file.path if name else None, warnings=warnings)


def require_brokers(connection: Connection, directories: Directories, environ: Mapping[str, str]) -> None:
    """Refuse a connection that knows no brokers.

    :raises ConfigError: with a hint on how to name them
    """
    if not connection.bootstrap_servers:
        raise _no_brokers(read_config(directories), None, environ)


def _no_brokers(file: ConfigFile, name: str | None, environ: Mapping[str, str]) -> ConfigError:
    misspelt = [key for key in environ if key.startswith(("KOPS_BOOT", "KOPS_BROKER"))]
    if misspelt:
        hint = f"{misspelt[0]} is not read; the name is {SETTINGS['bootstrap_servers'].variable}"
        return ConfigError("no brokers are configured", hint=hint)
    if name:
        return ConfigError(f"{file.path}: contexts.{name} has no bootstrap_servers", hint='add bootstrap_servers = ["host:9092"]')
    if file.contexts:
        known = ", ".join(sorted(file.contexts))
        return ConfigError("no context is chosen", hint=f"kops context use NAME, or -c NAME; known contexts: {known}")
    return ConfigError("no brokers are configured", hint="kops context add NAME --bootstrap-servers host:9092, or -B host:9092")
