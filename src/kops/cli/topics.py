"""``kops topics``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from kops.cli.lazy import Group
from kops.cli.options import Approval, mutation
from kops.cli.session import Session
from kops.core.errors import UsageProblem
from kops.output.render import Column

LIST_COLUMNS = (Column("name"), Column("partitions"), Column("replication_factor", "REPLICAS"))
TROUBLE_COLUMNS = (Column("under_replicated", "UNDER-REPLICATED"), Column("offline"))
PARTITION_COLUMNS = ("partition", "leader", "replicas", "in_sync_replicas")
SETTING_COLUMNS = ("name", "value", "source")

topic_option = click.option("--topic", "more", metavar="NAME", multiple=True, help="A name, as Apache's tools take it.")
regex_option = click.option("--regex", is_flag=True, help="Names are regular expressions, matched whole.")


@click.group(cls=Group)
def group() -> None:
    """List, describe, create and delete topics."""


@group.command("list")
@click.argument("patterns", metavar="[NAME_OR_GLOB]...", nargs=-1)
@regex_option
@click.option("--internal", is_flag=True, help="The brokers' own topics too.")
@click.option("-l", "--long", is_flag=True, help="Cleanup policy, retention and min.insync.replicas too.")
@click.pass_obj
def list_topics(session: Session, /, *, patterns: tuple[str, ...], regex: bool, internal: bool, long: bool) -> None:
    """List topics: all of them, or those that names and globs match."""
    from kops.operations.topics import LONG_SETTINGS, list_rows, select

    rows = list_rows(session, select(session, patterns, regex=regex, internal=internal).values(), long=long)
    trouble = [column for column in TROUBLE_COLUMNS if session.output_format != "table" or any(row[column.key] for row in rows)]
    session.render(rows, [*LIST_COLUMNS, *trouble, *(LONG_SETTINGS.values() if long else ())])


@group.command("describe")
@click.argument("patterns", metavar="NAME_OR_GLOB...", nargs=-1)
@topic_option
@regex_option
@click.option("--all-settings", is_flag=True, help="Kafka's defaults too.")
@click.pass_obj
def describe(session: Session, /, *, patterns: tuple[str, ...], more: tuple[str, ...], regex: bool, all_settings: bool) -> None:
    """Show partitions with their leaders and replicas, and the settings that are not Kafka's defaults."""
    from kops.operations.topics import describe_bodies, select

    found = select(session, required(patterns, more), regex=regex)
    show_topics(session, describe_bodies(session, found.values(), all_settings=all_settings))


@group.command("create")
@click.argument("names", metavar="NAME...", nargs=-1)
@topic_option
@click.option("--partitions", type=click.IntRange(min=1), help="Number of partitions. [default: the brokers' num.partitions]")
@click.option(
    "--replication-factor", type=click.IntRange(min=1), help="Copies of each partition. [default: the brokers' default.replication.factor]"
)
@click.option("--compacted", is_flag=True, help="Keep the latest record of each key: cleanup.policy=compact.")
@click.option(
    "--expire", metavar="DURATION", help="Delete records after 7d, 12h, 30m, P7D; with --compacted cleanup.policy=compact,delete."
)
@click.option("--config", "settings", metavar="KEY=VALUE", multiple=True, help="A topic setting, by Kafka's name; repeatable.")
@click.option("--like", metavar="TOPIC", help="Partitions, replication factor and settings of this topic, where not given.")
@click.option("--if-not-exists", is_flag=True, help="Leave topics that exist as they are.")
@mutation
@click.pass_obj
def create(
    session: Session,
    /,
    *,
    names: tuple[str, ...],
    more: tuple[str, ...],
    expire: str | None,
    settings: tuple[str, ...],
    if_not_exists: bool,
    approval: Approval,
    **wishes: Any,
) -> int:
    """Create topics, all alike.

    The plan shows the settings that they get, the brokers' defaults included, and warns about unsafe ones.
    """
    from kops.core.durations import parse_duration
    from kops.core.topic_wish import Wish
    from kops.operations.topics_create import plan_create

    expire_ms = parse_duration(expire, what="duration for --expire") if expire is not None else None
    wish = Wish(expire_ms=expire_ms, settings=dict(map(key_and_value, settings)), **wishes)
    return session.carry_out(plan_create(session, required(names, more), wish, if_not_exists=if_not_exists), approval)


@group.command("delete")
@click.argument("patterns", metavar="NAME_OR_GLOB...", nargs=-1)
@topic_option
@regex_option
@click.option("--if-exists", is_flag=True, help="Leave out names that do not exist.")
@mutation
@click.pass_obj
def delete(
    session: Session, /, *, patterns: tuple[str, ...], more: tuple[str, ...], regex: bool, if_exists: bool, approval: Approval
) -> int:
    """Delete topics with their records.

    To approve, one topic's name is typed (--confirm NAME), for several their number: --confirm '3 topics'.
    """
    from kops.operations.topics_delete import plan_delete

    return session.carry_out(plan_delete(session, required(patterns, more), regex=regex, if_exists=if_exists), approval)


def required(names: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the names of both spellings together, at least one."""
    together = [*names, *more]
    if not together:
        raise click.UsageError("Missing the name of a topic.", click.get_current_context())
    return together


def key_and_value(text: str) -> tuple[str, str]:
    """Split ``key=value``."""
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise UsageProblem(f"--config {text} has no value", hint="write it as --config retention.ms=3600000")
    return key.strip(), value


def show_topics(session: Session, bodies: Sequence[dict[str, Any]]) -> None:
    """Write topics to stdout: whole as JSON and YAML, a row a partition as CSV, two small tables each for people."""
    if session.output_format == "table":
        for number, body in enumerate(bodies):
            click.echo(("\n" if number else "") + headline(body))
            session.render(body["partitions"], PARTITION_COLUMNS)
            if body["settings"]:
                session.render(list(map(readable, body["settings"])), SETTING_COLUMNS)
    elif session.output_format == "csv":
        session.render(
            ({"name": body["name"], **partition} for body in bodies for partition in body["partitions"]), ("name", *PARTITION_COLUMNS)
        )
    else:
        session.render(bodies, ["name"])


def headline(body: dict[str, Any]) -> str:
    """Return one line about a topic, trouble included."""
    trouble = [
        f"{body[key]} {text}" for key, text in (("offline", "without a leader"), ("under_replicated", "under-replicated")) if body[key]
    ]
    partitions = f"{len(body['partitions'])} partition{'s' if len(body['partitions']) != 1 else ''}"
    return ", ".join(
        [f"{body['name']}: {partitions}", f"replication factor {body['replication_factor']}", *trouble, f"topic id {body['topic_id']}"]
    )


def readable(setting: dict[str, Any]) -> dict[str, Any]:
    """Return a setting with its value for people."""
    from kops.core.topic_settings import people_value

    if setting["value"] is None:
        return {**setting, "value": "(hidden)" if setting["sensitive"] else None}
    return {**setting, "value": people_value(setting["name"], setting["value"])}
