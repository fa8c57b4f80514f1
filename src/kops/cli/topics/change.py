"""``kops topics``: create, alter, add-partitions, truncate, delete; diff and apply, for topics that files declare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kops.cli.frame.options import Approval, mutation, regex_option
from kops.cli.frame.session import Session
from kops.cli.topics.shared import group, key_and_value, required, streams_option, topic_option

COLUMNS = ("topic", "field", "actual", "declared", "action", "note")
paths_argument = click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
OWNED = "topics that the files own (owns: [shop-*]) and do not declare"


@group.command("create")
@click.argument("names", metavar="NAME...", nargs=-1)
@topic_option
@click.option("-p", "--partitions", type=click.IntRange(1, 2**31 - 1), help="Number of partitions. [default: the brokers' num.partitions]")
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 2**15 - 1),
    help="Copies of each partition. [default: the brokers' default.replication.factor]",
)
@click.option("--compacted", is_flag=True, help="Keep the latest record of each key: cleanup.policy=compact.")
@click.option(
    "--expire", metavar="DURATION", help="Delete records after 7d, 12h, 30m, P7D; with --compacted cleanup.policy=compact,delete."
)
@click.option("--config", "settings", metavar="KEY=VALUE", multiple=True, help="A topic setting, such as retention.ms=7d; repeatable.")
@click.option("--like", metavar="TOPIC", help="Copy partitions, replication factor and settings of this topic where not given.")
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
    **given: Any,
) -> int:
    """Create topics, all with the same settings.

    The plan shows the settings that they get, the brokers' defaults included, and warns about unsafe ones.
    """
    from kops.core.durations import parse_duration
    from kops.core.topics.changes import TopicRequest
    from kops.operations.topics.requests import plan_create

    expire_ms = parse_duration(expire, what="duration for --expire") if expire is not None else None
    request = TopicRequest(expire_ms=expire_ms, settings=dict(map(key_and_value, settings)), **given)
    return session.carry_out(plan_create(session, required(names, more), request, if_not_exists=if_not_exists), approval)


@group.command("alter")
@click.argument("patterns", metavar="NAME_OR_GLOB...", nargs=-1)
@topic_option
@regex_option
@click.option(
    "--config", "settings", metavar="KEY=VALUE", multiple=True, help="A setting to set, such as retention.bytes=50GiB; repeatable."
)
@click.option(
    "--delete-config", "remove", metavar="KEY", multiple=True, help="A setting to remove, so that the brokers' default applies; repeatable."
)
@mutation
@click.pass_obj
def alter(
    session: Session,
    /,
    *,
    patterns: tuple[str, ...],
    more: tuple[str, ...],
    regex: bool,
    settings: tuple[str, ...],
    remove: tuple[str, ...],
    approval: Approval,
) -> int:
    """Change settings of topics; settings that are not named stay as they are.

    The plan shows old and new values, and warns about records that go at once and who has yet to read them. Undo restores
    the values, "not set" too, and cannot bring records back.
    """
    from kops.operations.topics.requests import plan_alter

    plan = plan_alter(session, required(patterns, more), dict(map(key_and_value, settings)), remove, regex=regex)
    return session.carry_out(plan, approval)


@group.command("add-partitions")
@click.argument("patterns", metavar="NAME_OR_GLOB...", nargs=-1)
@topic_option
@regex_option
@click.option("-p", "--partitions", type=click.IntRange(1, 2**31 - 1), required=True, metavar="N", help="New total, not the number to add.")
@streams_option
@mutation
@click.pass_obj
def add_partitions(
    session: Session,
    /,
    *,
    patterns: tuple[str, ...],
    more: tuple[str, ...],
    regex: bool,
    partitions: int,
    allow_streams: bool,
    approval: Approval,
) -> int:
    """Add partitions to topics. This cannot be undone.

    Keys map to other partitions from then on, which breaks compacted topics and Kafka Streams applications.
    """
    from kops.operations.topics.requests import plan_add_partitions

    plan = plan_add_partitions(session, required(patterns, more), partitions, regex=regex, allow_streams=allow_streams)
    return session.carry_out(plan, approval)


@group.command("truncate")
@click.argument("patterns", metavar="[TOPIC[:PARTITIONS]]...", nargs=-1)
@topic_option
@regex_option
@click.option("--to", metavar="POSITION", help="The new log start: an offset, a time such as @-1d, or end to delete all.")
@click.option(
    "--offset-json-file",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Offsets as Apache's kafka-delete-records takes them.",
)
@mutation
@click.pass_obj
def truncate(
    session: Session,
    /,
    *,
    patterns: tuple[str, ...],
    more: tuple[str, ...],
    regex: bool,
    to: str | None,
    file: Path | None,
    approval: Approval,
) -> int:
    """Delete the oldest records of partitions, for good.

    Records below the position are deleted; an offset outside the log becomes the nearest inside it. Partitions are
    named like orders, orders:0 or 'orders-*:0,3-5'. To approve, the topic's name is typed (--confirm NAME).
    """
    from kops.operations.topics.truncate import plan_truncate, plan_truncate_by_file

    if (to is None) == (file is None):
        raise click.UsageError("one of --to and --offset-json-file is needed", click.get_current_context())
    if file is not None:
        if patterns or more or regex:
            raise click.UsageError("--offset-json-file names the partitions itself", click.get_current_context())
        return session.carry_out(plan_truncate_by_file(session, file), approval)
    return session.carry_out(plan_truncate(session, required(patterns, more), to or "", regex=regex), approval)


@group.command("delete")
@click.argument("patterns", metavar="NAME_OR_GLOB...", nargs=-1)
@topic_option
@regex_option
@click.option("--if-exists", is_flag=True, help="Skip names that do not exist.")
@mutation
@click.pass_obj
def delete(
    session: Session, /, *, patterns: tuple[str, ...], more: tuple[str, ...], regex: bool, if_exists: bool, approval: Approval
) -> int:
    """Delete topics with their records.

    To approve, type the topic's name, or 'N topics' for several; --confirm NAME or --confirm '3 topics' does it in scripts.
    """
    from kops.operations.topics.requests import plan_delete

    return session.carry_out(plan_delete(session, required(patterns, more), regex=regex, if_exists=if_exists), approval)


@group.command("diff")
@paths_argument
@click.option("--prune", is_flag=True, help=f"As for `apply --prune`: count {OWNED}.")
@click.option("--reset-unmanaged", "reset", is_flag=True, help="As for `apply --reset-unmanaged`: count settings that no file mentions.")
@click.pass_obj
def diff(session: Session, /, *, paths: tuple[str, ...], prune: bool, reset: bool) -> int:
    """Compare topics with the files that declare them.

    Exit code 1 when anything is not as declared. Settings that no file mentions are shown, and count with
    --reset-unmanaged.
    """
    from kops.core.errors import ExitCode
    from kops.operations.topics.declared import compare_files, difference_rows, spared_topics

    comparison = compare_files(session, paths, prune=prune, reset=reset)
    rows = difference_rows(comparison)
    if session.output_format != "table":
        session.render(rows, COLUMNS)
    elif rows:
        session.render(rows, [column for column in COLUMNS if any(row[column] not in (None, "") for row in rows)], whole=True)
    session.note(*spared_topics(comparison))
    topics = len(comparison.declaration.topics)
    different = len({row["topic"] for row in rows if row["action"] != "unmanaged"})
    if different:
        session.note(f"{different} topic{'s differ' if different != 1 else ' differs'}, {topics} declared")
    else:
        session.note(f"{topics} topic{'s are' if topics != 1 else ' is'} as declared")
    return int(ExitCode.FAILED if comparison.differs else ExitCode.DONE)


@group.command("apply")
@paths_argument
@click.option("--prune", is_flag=True, help=f"Delete {OWNED}.")
@click.option("--reset-unmanaged", "reset", is_flag=True, help="Remove settings that no file mentions.")
@streams_option
@mutation
@click.pass_obj
def apply(session: Session, /, *, paths: tuple[str, ...], prune: bool, reset: bool, allow_streams: bool, approval: Approval) -> int:
    """Create, alter and grow topics as YAML files declare them, in one plan.

    PATH is a file, or a directory of them; a document has name, and may have partitions, replication_factor and config.
    Nothing shrinks, and nothing is deleted without --prune.
    """
    from kops.operations.topics.declared import plan_apply

    return session.carry_out(plan_apply(session, paths, prune=prune, reset=reset, allow_streams=allow_streams), approval)
