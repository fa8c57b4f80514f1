"""``kops groups``: list, describe, lag."""

from __future__ import annotations

import click

from kops.cli.lazy import Group
from kops.cli.session import Session

_regex = click.option("--regex", is_flag=True, help="The names are regular expressions on the whole name.")


@click.group(cls=Group)
def group() -> None:
    """Consumer groups: list, describe, lag.

    Names may be globs, such as 'billing-*'.
    """


@group.command("list")
@click.argument("names", metavar="[GROUP]...", nargs=-1)
@_regex
@click.option("--state", "states", metavar="STATE", multiple=True, help="Only groups in this state, such as empty or stable; repeatable.")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Only classic, consumer, streams, share or connect; repeatable.")
@click.pass_obj
def list_groups(session: Session, *, names: tuple[str, ...], regex: bool, states: tuple[str, ...], types: tuple[str, ...]) -> None:
    """List the groups of every type."""
    from kops.operations.groups import list_groups as rows

    session.render(rows(session, names, regex=regex, states=states, types=types), ["group", "type", "state"])


@group.command("describe")
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@_regex
@click.pass_obj
def describe(session: Session, *, names: tuple[str, ...], regex: bool) -> None:
    """Show state, coordinator and members of groups."""
    from kops.operations.groups import describe_groups, describe_table, member_table

    found = describe_groups(session, names, regex=regex)
    if session.output_format in ("json", "yaml"):
        session.render(found, ["group"])
        return
    session.render(describe_table(found), ["group", "type", "state", "protocol", "coordinator", "members"])
    members = member_table(found)
    if members and session.output_format == "table":
        click.echo()
        session.render(members, ["group", "client_id", "host", "assignment"])
    for row in found:
        if row["kafka_streams"]:
            session.note(f"{row['group']} is a Kafka Streams application")


@group.command("lag")
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@_regex
@click.option("--by", type=click.Choice(["partition", "topic", "group"]), default="partition", show_default=True, help="Sum the lag up.")
@click.pass_obj
def lag(session: Session, *, names: tuple[str, ...], regex: bool, by: str) -> int:
    """Show how far groups are behind.

    Lag is the log end less the committed offset, or less the log start where that is higher.
    """
    from kops.core.errors import ExitCode
    from kops.operations import groups_lag
    from kops.output.render import Column

    report = groups_lag.lag(session, names, regex=regex)
    if by == "group":
        session.render(groups_lag.by_group(report.rows), ["group", "state", "partitions", "lag", "largest_lag", "without_commit"])
    elif by == "topic":
        session.render(groups_lag.by_topic(report.rows), ["topic", "groups", "partitions", "lag", "largest_lag", "without_commit"])
    else:
        start, end = Column("log_start_offset", "LOG START"), Column("log_end_offset", "LOG END")
        columns: list[str | Column] = ["group", "topic", "partition", "committed", start, end, "lag", "note"]
        session.render(report.rows, columns)
    session.note(groups_lag.total(report.rows) if report.rows else f"no committed offsets of {' '.join(names)}")
    for name, problem in report.problems.items():
        session.note(f"warning: {name}: {problem.message}")
    return int(ExitCode.PARTIAL if report.problems else ExitCode.DONE)
