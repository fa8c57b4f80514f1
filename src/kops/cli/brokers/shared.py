"""The noun itself, and what its verbs share."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Group

ids_argument = click.argument("ids", metavar="[ID]...", nargs=-1, type=click.IntRange(0, 2**31 - 1))


@click.group(cls=Group)
def group() -> None:
    """Brokers: their share of the data, settings and log directories; take one out of service."""
