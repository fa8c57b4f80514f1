"""The noun itself, and what its verbs share."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Group

BROKER_ID = click.IntRange(0, 2**31 - 1)
ids_argument = click.argument("ids", metavar="[ID]...", nargs=-1, type=BROKER_ID)


@click.group(cls=Group)
def group() -> None:
    """Brokers: their share of the data, settings and log directories; take one out of service."""
