"""``kops groups``: list, describe, lag, config, alter, remove-members, delete."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, F, mutation, regex_option
from kops.cli.frame.session import Session
from kops.cli.frame.watch import clock, watch_interval, watched
from kops.cli.groups.lag import ExceededLimits, LagRequest, show_lag
from kops.core.errors import BrokerDown, ExitCode, KopsError, TimedOut, Unreachable
from kops.core.groups.lag_rates import Look, Rates

if TYPE_CHECKING:
    from kops.output.watch import Show


WATCH_INTERVAL = "2s"
_ISOLATION = "Measure lag up to the high watermark, or up to the first open transaction. [default: read_uncommitted]"
_TIME = "Read the age of the first unread records, and open transactions. [default: up to 2,000 partitions]"


def _named(command: F) -> F:
    """Take groups as arguments, or by the options of Apache's tools: names, globs, or with ``--regex`` regular expressions."""

    @click.argument("names", metavar="GROUP...", nargs=-1)
    @click.option("--group", "group_options", metavar="GROUP", multiple=True, help="A group, as Apache's tools take it; repeatable.")
    @click.option("--all-groups", is_flag=True, help="Every group, as in Apache's tools; the same as '*'.")
    @regex_option
    @wraps(command)
    def wrapped(*args: Any, names: tuple[str, ...], group_options: tuple[str, ...], all_groups: bool, **kwargs: Any) -> Any:
        watch = kwargs.get("watch")
        if watch and not watch[:1].isdigit():  # `--watch billing`: its interval may be left out, and the next word was taken for one
            names, kwargs["watch"] = (watch, *names), WATCH_INTERVAL
        if all_groups:
            names = (*names, ".*" if kwargs.get("regex") else "*")
        if not names and not group_options:
            raise click.UsageError("name a GROUP, or a glob such as '*' for all", click.get_current_context())
        return command(*args, names=(*names, *group_options), **kwargs)

    return wrapped  # type: ignore[return-value]


@click.group(cls=Group)
def group() -> None:
    """Consumer groups: list, describe, lag, delete.

    Names may be globs, such as 'billing-*'.
    """


@group.command("list")
@click.argument("names", metavar="[GROUP]...", nargs=-1)
@regex_option
@click.option("--state", "states", metavar="STATE", multiple=True, help="Only groups in this state, such as empty or stable; repeatable.")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Only classic, consumer, streams, share or connect; repeatable.")
@click.option("--all", "own", is_flag=True, help="Include the groups in which kops records the progress of replays and redrives.")
@click.pass_obj
def list_groups(
    session: Session, *, names: tuple[str, ...], regex: bool, states: tuple[str, ...], types: tuple[str, ...], own: bool
) -> int:
    """List the groups of every type."""
    from kops.operations.groups.matching import list_groups as rows
    from kops.operations.groups.matching import unseen_note, why_incomplete

    found = rows(session, names, regex=regex, states=states, types=types, own=own)
    session.render(found, ["group", "type", "state"])
    if sentence := unseen_note(found):
        session.note(sentence)
    if missing := why_incomplete(session):
        session.note(f"warning: {missing.message}")
    return int(ExitCode.PARTIAL if missing else ExitCode.DONE)


@group.command("describe")
@_named
@click.pass_obj
def describe(session: Session, *, names: tuple[str, ...], regex: bool) -> int:
    """Show state, coordinator and members of groups."""
    from kops.operations.groups.matching import describe_groups, describe_table, member_table

    problems: dict[str, KopsError] = {}
    found = describe_groups(session, names, problems, regex=regex)
    if session.output_format in ("json", "yaml"):
        session.render(found, ["group"])
        return session.missing(problems)
    session.render(describe_table(found), ["group", "type", "state", "members", "protocol", "coordinator"])
    members = member_table(found)
    if members and session.output_format == "table":
        click.echo()
        static = ["group_instance_id"] if any(row["group_instance_id"] for row in members) else []
        session.render(members, [*(["group"] if len(found) > 1 else []), "client_id", *static, "host", "assignment"])
    for row in found:
        if row["members"] is None:
            session.note(f"the members of {row['group']} are not known: this broker or client has no request for {row['type']} groups")
        if row["kafka_streams"]:
            session.note(f"{row['group']} is a Kafka Streams application: `kops streams describe {row['group']}` shows its topology")
    return session.missing(problems)


@group.command("lag")
@_named
@click.option(
    "--by",
    type=click.Choice(["partition", "topic", "group"]),
    default="partition",
    show_default=True,
    help="Show a row per partition, or the sum per topic or group.",
)
@click.option("--isolation", type=click.Choice(["read_uncommitted", "read_committed"]), default="read_uncommitted", help=_ISOLATION)
@click.option("--time/--no-time", "times", default=None, help=_TIME)
@click.option("--within", metavar="DURATION", help="Also show what retention will delete unread within this time, such as 1h.")
@click.option("--max-lag", metavar="N", type=click.IntRange(min=0), help="Exit with 1 if a row (see --by) lags by more.")
@click.option("--max-time", metavar="DURATION", help="Exit with 1 if a row is behind for longer, such as 5m.")
@click.option("--watch", metavar="[INTERVAL]", is_flag=False, flag_value=WATCH_INTERVAL, help="Repeat at this interval until Ctrl-C. [2s]")
@click.option("--count", metavar="N", type=click.IntRange(min=1), help="End --watch after N polls.")
@click.pass_obj
def lag(session: Session, /, **options: Any) -> int:
    """Show how far groups are behind, in records and in time.

    Lag is log end minus committed offset (or minus log start if that is higher). Time lag is the age of the oldest unread record.
    """
    watch, count = options.pop("watch"), options.pop("count")
    request = LagRequest.of(**options)
    return show_lag(session, request) if watch is None else _watched(session, request, watch, count)


@group.command("config")
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@click.option("--all", "everything", is_flag=True, help="Show settings that only the brokers set too.")
@click.pass_obj
def config(session: Session, /, *, names: tuple[str, ...], everything: bool) -> int:
    """Show the settings of groups of newer protocols, and where each comes from."""
    from kops.operations.groups.settings import setting_rows

    problems: dict[str, KopsError] = {}
    session.render(setting_rows(session, names, problems, everything=everything), ("group", "name", "value", "source"))
    return session.missing(problems)


@group.command("alter")
@click.argument("name", metavar="GROUP")
@click.option("--config", "settings", metavar="KEY=VALUE", multiple=True, help="A setting, such as share.auto.offset.reset=earliest.")
@click.option("--delete-config", "remove", metavar="KEY", multiple=True, help="A setting to remove; repeatable.")
@mutation
@click.pass_obj
def alter(session: Session, /, *, name: str, settings: tuple[str, ...], remove: tuple[str, ...], approval: Approval) -> int:
    """Change settings of a group, such as session time-outs or the dead letter topic of a share group."""
    from kops.cli.topics.shared import key_and_value
    from kops.operations.groups.settings import plan_alter

    return session.carry_out(plan_alter(session, name, dict(map(key_and_value, settings)), remove), approval)


@group.command("remove-members")
@click.argument("name", metavar="GROUP")
@click.option("--client-id", "client_ids", metavar="ID_OR_GLOB", multiple=True, help="Members with this client id; repeatable.")
@click.option("--host", "hosts", metavar="HOST_OR_GLOB", multiple=True, help="Members that connect from this address; repeatable.")
@click.option("--instance-id", "instance_ids", metavar="ID_OR_GLOB", multiple=True, help="Static members (group.instance.id); repeatable.")
@click.option(
    "--member-id", "member_ids", metavar="ID", multiple=True, help="One member, as `groups describe -o json` names it; repeatable."
)
@click.option("--all", "everyone", is_flag=True, help="Every member.")
@mutation
@click.pass_obj
def remove_members(session: Session, /, *, name: str, approval: Approval, **given: Any) -> int:
    """Remove members from a group: its partitions move to the others at once.

    For members that are gone or hang: a static member keeps its partitions until its session times out. A process that still runs joins
    again. Where options of several kinds are given, a member must match each.
    """
    from kops.operations.groups.remove import Chosen, plan_remove

    return session.carry_out(plan_remove(session, name, Chosen(**given)), approval)


@group.command("delete")
@_named
@mutation
@click.pass_obj
def delete(session: Session, *, names: tuple[str, ...], regex: bool, approval: Approval) -> int:
    """Delete empty groups with their offsets.

    A group with members is refused, or left alone where a glob matches it.

    The journal keeps the offsets: `kops undo` recreates the groups with them.
    """
    from kops.operations.offsets.delete_groups import plan_delete

    return session.carry_out(plan_delete(session, names, regex=regex), approval)


def _watched(session: Session, request: LagRequest, interval: str, count: int | None) -> int:
    """Look until Ctrl-C. A cluster that does not answer for a while, after it once did, is reported on stderr and asked again."""
    milliseconds, rates = watch_interval(session, interval), Rates(request.by)
    with _shown(session, request.by) as show:

        def once_more() -> int:
            look, exceeded, code = _look(session, request, rates)
            show(look, clock(session), exceeded)
            return code

        return watched(session, milliseconds, count, once_more, passing=(BrokerDown, TimedOut, Unreachable))


def _look(session: Session, request: LagRequest, rates: Rates) -> tuple[Look, list[str], int]:
    report = request.ask(session)
    now = time.monotonic()
    blocks = list(report.blocks)
    exceeded = ExceededLimits(request.limits)
    exceeded.look_at(request.summed(blocks if request.by == "partition" else exceeded.watched_for_times(blocks)))
    code = ExitCode.FAILED if exceeded.first else ExitCode.PARTIAL if report.problems else ExitCode.DONE
    for problem in report.problems.values():
        session.note(f"warning: {problem.message}")
    return rates.look((row for block in blocks for row in block.rows()), now), exceeded.first, int(code)


def _shown(session: Session, by: str) -> AbstractContextManager[Show]:
    from kops.output.watch import json_lines, live_table, plain_lines

    if session.output_format == "json":
        return nullcontext(json_lines(by, sys.stdout))
    return live_table(by, sys.stdout) if sys.stdout.isatty() else nullcontext(plain_lines(sys.stdout))
