"""``kops plugins``."""

from __future__ import annotations

from dataclasses import asdict

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.session import Session


@click.group(cls=Group)
def group() -> None:
    """Installed plugins: commands, reducers for state files, and formats of other distributions."""


@group.command("list")
@click.pass_obj
def list_(session: Session) -> None:
    """List installed plugins, and whether they work.

    Each plugin is imported to find out. A broken one is only a warning. If two have the same name,
    or one has the name of a part of kops, one wins and the other is hidden.
    """
    from kops.cli.frame.main import NOUNS
    from kops.plugins.loader import check_all, warn

    found = check_all(NOUNS)
    for checked in found:
        if checked.status in ("error", "hidden"):
            warn(f"{checked.plugin} cannot be used: {checked.error}")
    rows = [{**asdict(checked.plugin), "status": checked.status, "error": checked.error or None} for checked in found]
    if not rows:
        from kops.core.extras import command_to_add

        session.note(f"no plugins are installed; in a clone, `{command_to_add(['./plugins/kops-extras'])}` installs one")
    session.render(rows, ["name", "kind", "distribution", "version", "status"])
