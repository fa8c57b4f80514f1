"""The options of ``kops context``, generated from the table of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from kops.cli.frame.options import F
from kops.cli.frame.session import Session
from kops.config.schema import SECRET_FORMS, SETTINGS, Kind, Setting, convert_text, split_property
from kops.core.errors import UsageProblem

_FROM_SHARED = ("timeout", "client")
"""Settings that the shared options ``--timeout`` and ``-X`` give."""


def settings_options(command: F) -> F:
    """Add one option per setting; a secret gets ``--NAME-file``, ``--NAME-command`` and ``--NAME-env``."""
    for setting in reversed(list(SETTINGS.values())):
        for option in reversed(_options(setting)):
            command = option(command)
    return command


def save_options(command: F) -> F:
    command = click.option("--replace", "replace_", is_flag=True, help="Replace a context of this name.")(command)
    return click.option("--current", is_flag=True, help="Make it the current context.")(command)


def only_name(session: Session, name: str | None) -> None:
    """Use a positional name as if it had been passed with ``-c``.

    :raises UsageProblem: when both are passed and differ
    """
    given = session.settings.get("context")
    if name and given and given != name:
        raise UsageProblem(f"two contexts are given: {name} and -c {given}", hint="keep one of them")
    if name:
        session.settings["context"] = name


def table_of(values: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context as ``config.toml`` stores it. Paths become absolute.

    :param values: of the options defined here
    :param shared: of the shared options
    :raises UsageProblem: on a shared option that a context cannot hold
    """
    from kops.config.layers import from_properties

    table: dict[str, Any] = {}
    if shared.get("command_config"):
        raise UsageProblem("--command-config is not part of a context", hint="kops context import FILE --name NAME")
    if shared.get("timeout"):
        table["timeout"] = shared["timeout"]
    if shared.get("bootstrap_server"):
        table["bootstrap_servers"] = [one.strip() for one in shared["bootstrap_server"].split(",") if one.strip()]
    for key, sourced in from_properties(shared.get("properties", ())).items():
        _put(table, key, list(sourced.value) if isinstance(sourced.value, tuple) else sourced.value)
    for setting in SETTINGS.values():
        for key, value in _given(setting, values):
            _put(table, key, value)
    return table


def _put(table: dict[str, Any], key: str, value: Any) -> None:
    for part in ("spark.conf", "spark", "client"):
        if key.startswith(part + "."):
            inner = table
            for name in part.split("."):
                inner = inner.setdefault(name, {})
            inner[key[len(part) + 1 :]] = value
            return
    table[key] = value


def _given(setting: Setting, values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    parameter = setting.name.replace(".", "_")
    if setting.kind is Kind.SECRET:
        found = {form: values.get(f"{parameter}_{form}") for form in SECRET_FORMS}
        return [(f"{setting.name}_{form}", _absolute(value) if form == "file" else value) for form, value in found.items() if value]
    value = values.get(parameter)
    if value in (None, ()):
        return []
    if setting.kind is Kind.TABLE:
        return [(f"{setting.name}.{key}", one) for key, one in (split_property(text, _flag(setting)) for text in value)]
    if isinstance(value, str):
        value = convert_text(setting, value, _flag(setting))
    return [(setting.name, list(value) if isinstance(value, tuple) else value)]


def _absolute(text: str) -> str:
    return str(Path(text).expanduser().absolute())


def _flag(setting: Setting) -> str:
    return "--" + setting.name.replace("_", "-").replace(".", "-")


def _options(setting: Setting) -> list[Callable[[F], F]]:
    flag = _flag(setting)
    if setting.name in _FROM_SHARED:
        return []
    if setting.kind is Kind.SECRET:
        what = setting.help.rstrip(".")
        return [
            click.option(f"{flag}-file", metavar="FILE", help=f"{what}: the file that holds it."),
            click.option(f"{flag}-command", metavar="COMMAND", help=f"{what}: a command that prints it."),
            click.option(f"{flag}-env", metavar="NAME", help=f"{what}: the variable that holds it."),
        ]
    if setting.kind is Kind.FLAG:
        names = f"{flag}/--no-{flag[2:]}" if setting.name == "verify_hostname" else flag
        return [click.option(names, is_flag=True, default=None, help=setting.help)]
    if setting.kind is Kind.CHOICE:
        choice = click.Choice(setting.choices, case_sensitive=False)
        return [click.option(flag, type=choice, metavar="NAME", help=f"{setting.help} {', '.join(setting.choices)}.")]
    metavar = {Kind.PATH: "FILE", Kind.TABLE: "KEY=VALUE"}.get(setting.kind, "TEXT")
    return [click.option(flag, metavar=metavar, multiple=setting.kind is Kind.TABLE, help=setting.help)]
