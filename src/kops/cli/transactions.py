"""``kops transactions``: list, describe, producers, abort."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.core.errors import KopsError, UsageProblem
from kops.output.table import Column

ID_COLUMNS = ("transactional_id", "state", Column("producer_id", "PRODUCER"), Column("producer_epoch", "EPOCH"), "coordinator", "age")
OPEN_COLUMNS = (
    *("topic", Column("partition", "P"), Column("start_offset", "FROM"), "transactional_id", Column("producer_id", "PRODUCER"), "state"),
    *("age", "hanging"),
)
PRODUCER_COLUMNS = (
    *("topic", Column("partition", "P"), Column("producer_id", "PRODUCER"), Column("producer_epoch", "EPOCH")),
    *(Column("last_sequence", "SEQUENCE"), "last_timestamp", Column("transaction_start_offset", "OPEN FROM")),
)


@click.group(cls=Group)
def group() -> None:
    """Transactions: list, describe, abort those that hang.

    An open transaction holds back the last stable offset of its partitions: consumers of committed data wait there.
    """


@group.command("list")
@click.argument("ids", metavar="[ID_OR_GLOB]...", nargs=-1)
@click.option("--state", "states", metavar="STATE", multiple=True, help="Only ids in this state, such as ongoing; repeatable.")
@click.option("--open", "opened", is_flag=True, help="List the open transactions of partitions instead, by what the partitions hold.")
@click.option("--hanging", is_flag=True, help="As --open, only those that no coordinator will end.")
@click.option(
    "--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="With --open or --hanging: look only there; repeatable."
)
@click.pass_obj
def list_(
    session: Session, /, *, ids: tuple[str, ...], states: tuple[str, ...], opened: bool, hanging: bool, topics: tuple[str, ...]
) -> int:
    """List transactional ids, or the open transactions of partitions."""
    from kops.operations.transactions.look import list_transactions, open_rows, open_transactions

    problems: dict[str, KopsError] = {}
    if not (opened or hanging):
        if topics:
            raise UsageProblem("--topic needs --open or --hanging", hint="transactional ids have no topics; add --open")
        session.render([_aged(session, row) for row in list_transactions(session, ids, states, problems)], _shown(session, ID_COLUMNS))
        return session.missing(problems)
    if ids or states:
        raise UsageProblem("--open and --hanging choose by partition", hint="name topics with --topic, and no ids or states")
    rows = open_rows(session, open_transactions(session, topics, problems), hanging=hanging)
    session.render([_aged(session, row) for row in rows], _shown(session, OPEN_COLUMNS))
    if any(row["hanging"] for row in rows):
        session.note("`kops transactions abort --hanging` aborts those that hang")
    return session.missing(problems)


@group.command("describe")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.pass_obj
def describe(session: Session, /, *, ids: tuple[str, ...]) -> int:
    """Show transactional ids: state, producer, time-out, and the partitions of an open transaction."""
    from kops.operations.transactions.look import describe as find

    problems: dict[str, KopsError] = {}
    rows = find(session, ids, problems)
    session.render([_aged(session, row) for row in rows], [*_shown(session, ID_COLUMNS), "timeout_ms", "partitions"])
    return session.missing(problems)


@group.command("producers")
@click.argument("patterns", metavar="TOPIC[:PARTITIONS]...", nargs=-1, required=True)
@click.pass_obj
def producers(session: Session, /, *, patterns: tuple[str, ...]) -> int:
    """Show which idempotent and transactional producers the leaders of partitions remember."""
    from kops.operations.transactions.look import producer_rows

    problems: dict[str, KopsError] = {}
    columns: list[str | Column] = [*PRODUCER_COLUMNS, *([] if session.output_format == "table" else ["coordinator_epoch"])]
    session.render(producer_rows(session, patterns, problems), columns)
    return session.missing(problems)


@group.command("abort")
@click.argument("patterns", metavar="[TOPIC[:PARTITIONS]]...", nargs=-1)
@click.option("--hanging", is_flag=True, help="Every transaction of the cluster that hangs, or of the topics that are named.")
@click.option("--start-offset", type=click.IntRange(min=0), metavar="N", help="Only the transaction of the partition that begins here.")
@click.option(
    "--transactional-id",
    "ids",
    metavar="ID",
    multiple=True,
    help="End the open transaction of this id, and fence its producer; repeatable.",
)
@mutation
@click.pass_obj
def abort(
    session: Session,
    /,
    *,
    patterns: tuple[str, ...],
    hanging: bool,
    start_offset: int | None,
    ids: tuple[str, ...],
    approval: Approval,
) -> int:
    """Abort transactions. This cannot be undone: consumers of committed data never see their records.

    In partitions, only transactions that no coordinator will end are aborted; one that is alive is refused. The result shows where the last
    stable offset is now. To approve, type the topic's name (--confirm NAME).
    """
    from kops.operations.transactions.abort import plan_abort, plan_fence, require_choice

    require_choice(patterns, ids, hanging=hanging, start_offset=start_offset)
    plan = plan_fence(session, ids) if ids else plan_abort(session, patterns, start_offset=start_offset)
    return session.carry_out(plan, approval)


def _shown(session: Session, columns: tuple[str | Column, ...]) -> list[str | Column]:
    if session.output_format == "table":
        return list(columns)
    return [key for column in columns for key in (("age_ms", "timeout_ms") if column == "age" else (column,))]


def _aged(session: Session, row: dict[str, object]) -> dict[str, object]:
    if session.output_format != "table":
        return row
    from kops.core.groups.lag import age_text

    age = row["age_ms"]
    more = {"hanging": "yes" if row["hanging"] else None} if "hanging" in row else {}
    return {**row, "age": age_text(age) if isinstance(age, int) else None, **more}
