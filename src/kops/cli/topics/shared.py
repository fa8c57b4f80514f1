"""The noun itself, and what its verbs share."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kops.cli.frame.lazy import Group
from kops.core.errors import UsageProblem

topic_option = click.option("--topic", "more", metavar="NAME", multiple=True, help="A name, as Apache's tools take it.")
streams_option = click.option("--allow-streams", is_flag=True, help="Allow topics of Kafka Streams applications, which break.")


@click.group(cls=Group)
def group() -> None:
    """List, describe, create, change and delete topics.

    Names may be globs, such as 'orders-*'.
    """


def required(names: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the names of both spellings together, at least one."""
    together = [*names, *more]
    if not together:
        raise click.UsageError("Missing the name of a topic.", click.get_current_context())
    return together


def key_and_value(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise UsageProblem(f"--config {text} has no value", hint="write it as --config retention.ms=3600000")
    return key.strip(), value
