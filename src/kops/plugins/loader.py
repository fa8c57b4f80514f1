"""Finding plugins by their entry points, and loading them on demand. Standard library only.

Names are read from the metadata of installed distributions without importing them, and only if kops itself has nothing
of that name: built-ins always win. A plugin that cannot be loaded is a warning, and breaks nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from kops.core.errors import ConfigError, KopsError
from kops.core.statefile.reducers import as_reducer
from kops.formats.base import Format
from kops.formats.registry import FORMATS, unknown_format

if TYPE_CHECKING:
    from kops.core.statefile import Form

GROUPS: Mapping[str, str] = {"command": "kops.commands.v1", "reducer": "kops.reducers.v1", "format": "kops.formats.v1"}
"""Kind of plugin -> entry-point group. An incompatible change gets a new group, and the old one stays."""

DISABLED = "KOPS_DISABLED_PLUGINS"
BUILT_IN_REDUCERS = ("count", "sum", "min", "max", "last", "first")


@dataclass(frozen=True)
class Plugin:
    """An entry point of an installed distribution.

    :param distribution: name of the distribution that installed it
    :param reference: ``module:attribute``
    """

    name: str
    kind: str
    distribution: str
    version: str
    reference: str

    def __str__(self) -> str:
        return f"plugin {self.name} ({self.kind}) of {self.distribution} {self.version}"


@dataclass(frozen=True)
class PluginCheck:
    """A plugin and whether it can be used.

    :param status: ok, error, disabled, or hidden by something else of that name
    :param error: the reason; empty for ok
    """

    plugin: Plugin
    status: str
    error: str = ""


def installed(kind: str) -> list[Plugin]:
    """Return the plugins of a kind by name, including disabled ones; nothing is imported."""
    found = {_describe(kind, point) for point in entry_points(group=GROUPS[kind])}
    return sorted(found, key=lambda plugin: (plugin.name, plugin.distribution, plugin.version))


def is_disabled(plugin: Plugin) -> bool:
    """Whether ``KOPS_DISABLED_PLUGINS`` names it, its distribution, or ``all``; separated by commas."""
    names = {name.strip() for name in os.environ.get(DISABLED, "").split(",")}
    return bool(names & {plugin.name, plugin.distribution, "all"})


def find(kind: str, name: str) -> Plugin | None:
    """Return the plugin of a name: that of the first distribution by name, skipping disabled ones."""
    return next((plugin for plugin in installed(kind) if plugin.name == name and not is_disabled(plugin)), None)


def load(plugin: Plugin) -> Any:
    """Import a plugin.

    :raises ConfigError: if it cannot be imported or has the wrong type, with a way to continue without it
    """
    try:
        thing = EntryPoint(plugin.name, plugin.reference, GROUPS[plugin.kind]).load()
        return _CHECKS[plugin.kind](thing, plugin)
    except (Exception, SystemExit) as broken:
        reason = broken.message if isinstance(broken, KopsError) else f"{type(broken).__name__}: {broken}"
        first_line = reason.splitlines()[0] if reason else "no reason given"
        raise ConfigError(
            f"{plugin} cannot be used: {first_line}",
            hint=f"reinstall or remove {plugin.distribution}, or set {DISABLED}={plugin.name}",
            plugin=plugin.name,
            distribution=plugin.distribution,
        ) from broken


def load_command(name: str) -> Any:
    """Return a plugin's click command; None if there is none, or if it is broken, which is a warning."""
    plugin = find("command", name)
    if plugin is None:
        return None
    try:
        return load(plugin)
    except ConfigError as broken:
        warn(f"{broken.message}; {broken.hint}")
        return None


def format_of(form: Form) -> Format:
    """Return the format of a key or value of a state file, bound to its schemas.

    :raises UsageProblem: if it does not exist
    """
    if not form.registered:
        return load_format(form.name)
    from kops.formats.registered_columns import format_with

    return format_with(form)


def load_format(name: str) -> Format:
    """Return a format: kops' own, otherwise a plugin's.

    :raises UsageProblem: if it does not exist, suggesting a similar one, or if its plugin is broken
    """
    if name in FORMATS:
        return FORMATS[name]
    plugin = find("format", name)
    if plugin is None:
        raise unknown_format(name, dict.fromkeys([*FORMATS, *(other.name for other in installed("format") if not is_disabled(other))]))
    form: Format = load(plugin)
    return form


def reducer_reference(name: str) -> str:
    """Return the ``module:attribute`` of a reducer that a state file names; Spark's executors import it.

    :param name: of a plugin, or ``module:attribute``
    :raises ConfigError: if there is no such plugin, or it is broken
    """
    if ":" in name:
        return name
    plugin = find("reducer", name)
    if plugin is None:
        known = ", ".join(sorted({other.name for other in installed("reducer") if not is_disabled(other)})) or "none"
        raise ConfigError(
            f"there is no reducer {name!r}", hint=f"reducers of plugins: {known}; or name your own as module:attribute", reducer=name
        )
    load(plugin)
    return plugin.reference


def check_all(commands: Iterable[str]) -> list[PluginCheck]:
    """Load every plugin on its own, and report which can be used.

    :param commands: kops' own, which take precedence
    """
    own = {"command": set(commands), "reducer": set(BUILT_IN_REDUCERS), "format": set(FORMATS)}
    checked: list[PluginCheck] = []
    for kind in GROUPS:
        taken: dict[str, str] = {}
        for plugin in installed(kind):
            winner = "kops" if plugin.name in own[kind] else taken.get(plugin.name)
            checked.append(_check(plugin, winner))
            if not is_disabled(plugin):
                taken.setdefault(plugin.name, plugin.distribution)
    return checked


def warn(text: str) -> None:
    sys.stderr.write(f"kops: warning: {text}\n")


def _check(plugin: Plugin, winner: str | None) -> PluginCheck:
    if is_disabled(plugin):
        return PluginCheck(plugin, "disabled", f"by {DISABLED}")
    if winner:
        return PluginCheck(plugin, "hidden", f"{winner} has a {plugin.kind} of that name, which takes precedence")
    try:
        load(plugin)
    except ConfigError as broken:
        return PluginCheck(plugin, "error", broken.message.partition(" cannot be used: ")[2])
    return PluginCheck(plugin, "ok")


def _describe(kind: str, point: EntryPoint) -> Plugin:
    distribution, version = (point.dist.name, point.dist.version) if point.dist else ("unknown", "unknown")
    return Plugin(point.name, kind, distribution, version, reference=point.value)


def _check_command(thing: Any, _: Plugin) -> Any:
    # Duck typing, because only the command line imports click.
    if isinstance(thing, type) or not all(hasattr(thing, name) for name in ("main", "make_context", "params")):
        raise ConfigError(f"a click.Command is expected, this is {type(thing).__name__}")
    return thing


def _check_reducer(thing: Any, plugin: Plugin) -> Any:
    return as_reducer(thing, plugin.reference)


def _check_format(thing: Any, _: Plugin) -> Any:
    form = thing() if isinstance(thing, type) else thing
    if not isinstance(form, Format):
        raise ConfigError(f"a format with name, encode, parse, decode and show is expected, this is {type(thing).__name__}")
    return form


_CHECKS = {"command": _check_command, "reducer": _check_reducer, "format": _check_format}
