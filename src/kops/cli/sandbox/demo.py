"""``kops demo``."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.session import Session


@click.command("demo", cls=Command)
@click.option(
    "--guarantee",
    type=click.Choice(["at_least_once", "exactly_once_v2"]),
    default="at_least_once",
    show_default=True,
    help="Processing guarantee of the application.",
)
@click.pass_obj
def demo(session: Session, *, guarantee: str) -> None:
    """Lose an application's state on a real Kafka, and restore it exactly.

    Starts a Kafka and the Kafka Streams application of examples/prices on this machine, destroys the application's
    state, rebuilds it, and removes everything again. Takes about a minute.
    """
    from kops.core.extras import STATE, needs

    needs(STATE, "the demo rebuilds state, which needs")
    from kops.cli.sandbox.tour import take_the_tour

    take_the_tour(session.directories.cache, guarantee)
