"""Options that several verbs of ``kops offsets`` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kops.cli.frame.options import mutation

F = TypeVar("F", bound=Callable[..., Any])


def named(command: F) -> F:
    """Take the group as an argument, or as ``--group`` as Apache's tools do."""
    import functools

    @click.argument("name", metavar="GROUP", required=False)
    @click.option("--group", "group_option", metavar="GROUP", help="The group, as Apache's tools take it.")
    @functools.wraps(command)
    def wrapped(*args: Any, name: str | None, group_option: str | None, **kwargs: Any) -> Any:
        if (name is None) == (group_option is None):
            raise click.UsageError("name one GROUP, as an argument or with --group", click.get_current_context())
        return command(*args, group_id=name if name is not None else group_option, **kwargs)

    return wrapped  # type: ignore[return-value]


def moving(command: F) -> F:
    """Add what every command that moves a group takes."""
    new_group = click.option("--new-group", is_flag=True, help="Allow a group that does not exist yet.")
    wait = click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for groups to become empty, such as 60s.")
    return new_group(wait(mutation(command)))
