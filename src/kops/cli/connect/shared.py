"""The noun itself, and what its verbs share."""

from __future__ import annotations

from collections.abc import Callable

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import F, regex_option


@click.group(cls=Group)
def group() -> None:
    """Operate Kafka Connect: plugins, connectors, their states and their offsets.

    The workers are those of the context's connect_urls, or of KOPS_CONNECT_URLS. Names may be globs, such as 'orders-*'.
    """


def connectors(*, required: bool = True) -> Callable[[F], F]:
    """Add the arguments for connectors: names, globs, or with ``--regex`` regular expressions."""
    metavar = "CONNECTOR_OR_GLOB..." if required else "[CONNECTOR_OR_GLOB]..."

    def add(command: F) -> F:
        return click.argument("patterns", metavar=metavar, nargs=-1, required=required)(regex_option(command))

    return add


wait_option = click.option("--wait", metavar="DURATION", default="30s", show_default=True, help="Wait up to this long for the new states.")
