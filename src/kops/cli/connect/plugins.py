"""``kops connect plugins``: list, describe, add."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click

from kops.cli.connect.shared import group
from kops.cli.frame.session import Session
from kops.core.findings import counted
from kops.core.visible import visible

WIDEST = 120
KINDS = ("source", "sink", "converter", "header_converter", "transformation", "predicate")


@group.group("plugins")
def plugins() -> None:
    """Show the workers' plugins, and fetch others for the sandbox's workers."""


@plugins.command("list")
@click.option("--type", "kind", type=click.Choice(KINDS), help="Only plugins of this type.")
@click.option("--all", "every", is_flag=True, help="Show converters, transforms and predicates too.")
@click.pass_obj
def list_plugins(session: Session, /, *, kind: str | None, every: bool) -> None:
    """List the plugins that the workers have: connectors, and with --all everything else."""
    from kops.operations.connect.plugins import plugin_rows

    session.render(plugin_rows(session, kind, every=every), ["class", "type", "version"])


@plugins.command("describe")
@click.argument("plugin", metavar="CLASS")
@click.option("--required", is_flag=True, help="Only required settings.")
@click.pass_obj
def describe(session: Session, /, *, plugin: str, required: bool) -> None:
    """Show the settings of a plugin: type, default and documentation.

    CLASS may be the last part of the class name, as in Connect.
    """
    from kops.operations.connect.plugins import SETTING_COLUMNS, plugin_body

    body = plugin_body(session, plugin)
    settings = [each for each in body["settings"] if each["required"] or not required]
    if session.output_format in ("json", "yaml"):
        session.render_object({**body, "settings": settings}, name="class")
    elif session.output_format == "table":
        _write(settings)
    else:
        session.render(settings, SETTING_COLUMNS)
    session.note(f"{body['class']}: {counted(len(settings), 'setting')}")


def _write(settings: Sequence[Mapping[str, Any]]) -> None:
    """Write settings for people: one line each, followed by the documentation."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    for each in settings:
        value = "required" if each["required"] else f"default {each['default']}" if each["default"] not in (None, "") else "optional"
        click.echo(visible(f"{each['name']}  {each['type']}, {value}"))
        for line in textwrap.wrap(each["documentation"], width - 4):
            click.echo(f"    {line}")


@plugins.command("add")
@click.argument("coordinates", metavar="GROUP:ARTIFACT:VERSION...", nargs=-1, required=True)
@click.pass_obj
def add(session: Session, /, *, coordinates: tuple[str, ...]) -> None:
    """Fetch plugins by Maven coordinate into the cache, for the workers of `kops sandbox up --connect`.

    A plugin's archive (-plugin.tar.gz) is unpacked; without one its jar is fetched with all dependencies. Workers find it when they start.
    """
    from kops.operations.connect.plugins import add_plugins

    session.render(add_plugins(session, coordinates), ["plugin", "jars", "directory"])
    session.note("workers find plugins when they start: kops sandbox down, then kops sandbox up --connect")
