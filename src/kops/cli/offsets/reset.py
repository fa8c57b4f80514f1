"""``kops offsets reset``: Apache's flags, for one group or many, alone or mixed; and options that other verbs share."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.options import Approval, F, mutation
from kops.cli.frame.session import Session

_ORDER = "kops.offsets.order"


def group_argument(command: F) -> F:
    """Take the group as an argument, or as ``--group`` as Apache's tools do."""

    @click.argument("name", metavar="GROUP", required=False)
    @click.option("--group", "group_option", metavar="GROUP", help="The group, as Apache's tools take it.")
    @wraps(command)
    def wrapped(*args: Any, name: str | None, group_option: str | None, **kwargs: Any) -> Any:
        if (name is None) == (group_option is None):
            raise click.UsageError("name one GROUP, as an argument or with --group", click.get_current_context())
        return command(*args, group_id=name if name is not None else group_option, **kwargs)

    return wrapped  # type: ignore[return-value]


def move_options(command: F) -> F:
    """Add what every command that moves a group takes."""
    new_group = click.option("--new-group", is_flag=True, help="Allow a group that does not exist yet.")
    wait = click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for groups to become empty, such as 60s.")
    return new_group(wait(mutation(command)))


class OrderedOptionsCommand(Command):
    """A command that remembers the order of its options: each strategy is for the topics before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and keep the names of the options as they came."""
        ctx.meta[_ORDER] = [param.name for param in self.make_parser(ctx).parse_args(args=list(args))[2]]
        return super().parse_args(ctx, args)


@click.command("reset", cls=OrderedOptionsCommand)
@click.argument("names", metavar="[GROUP...]", nargs=-1)
@click.option("--group", "group_options", metavar="GROUP", multiple=True, help="A group, as Apache's tools take it; repeatable.")
@click.option("--all-groups", is_flag=True, help="Every group that has committed offsets.")
@click.option("--topic", metavar="TOPIC[:PARTITIONS]", multiple=True, help="What to move: orders, orders:0,3-5 or 'orders-*'; repeatable.")
@click.option("--all-topics", is_flag=True, help="Every partition that a group has committed.")
@click.option("--regex", is_flag=True, help="Names of groups and topics are regular expressions that match whole names.")
@click.option("--to", metavar="POSITION", multiple=True, help="start, end, current, an offset, or a time such as @-1h.")
@click.option("--to-earliest", count=True, help="To the log start.")
@click.option("--to-latest", count=True, help="To the log end.")
@click.option("--to-current", count=True, help="Keep the offset; partitions without a commit go to the log end.")
@click.option("--to-offset", type=int, multiple=True, metavar="OFFSET", help="To this offset, or the nearest in the log.")
@click.option(
    "--to-datetime",
    metavar="TIME",
    multiple=True,
    help="To the first record at or after YYYY-MM-DDTHH:mm:SS.sss, UTC unless it has a zone, or @-1h.",
)
@click.option("--by-duration", metavar="DURATION", multiple=True, help="To the first record of the last PnDTnHnMnS, or 6h.")
@click.option("--shift-by", type=int, multiple=True, metavar="N", help="By N offsets forwards, or backwards if negative.")
@click.option("--to-history", metavar="TIME", multiple=True, help="To the offset at a time such as @-1h, see `kops offsets history`.")
@click.option(
    "--from-file",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    help="To the offsets in a file: an export as CSV or JSON, or a list of positions.",
)
@click.option("--execute", is_flag=True, help="Accepted as in Apache's tools; the plan is still shown and must be approved.")
@move_options
@click.pass_context
def reset(
    ctx: click.Context,
    /,
    *,
    names: tuple[str, ...],
    group_options: tuple[str, ...],
    all_groups: bool,
    all_topics: bool,
    regex: bool,
    execute: bool,
    new_group: bool,
    wait_empty: str | None,
    approval: Approval,
    **given: Any,
) -> int:
    """Move the committed offsets of groups, with the flags of Apache's tools.

    An offset outside the log becomes the nearest inside it; a time after the last record means the log end.

    GROUPs and topics may be globs. A pattern matches only topics that a group has committed. Groups with members that match a pattern are
    skipped and reported (exit code 6), unless they read nothing of what is reset.

    Each strategy applies to the --topic options before it, a single one to all: `--topic a --to-earliest --topic b --to @-1h`.
    A file of positions is a YAML or JSON list of group (optional), topic, partitions (optional) and position.
    """
    from kops.operations.offsets.reset import Scope, plan_resets
    from kops.operations.offsets.strategies import mixes_of

    session: Session = ctx.obj
    if execute and approval.dry_run:
        raise click.UsageError("--execute and --dry-run exclude each other", ctx)
    scope = Scope(regex=regex, all_groups=all_groups, all_topics=all_topics, new_group=new_group, wait_empty=wait_empty)
    plan = plan_resets(session, (*names, *group_options), mixes_of(in_order(ctx, given)), scope)
    return session.carry_out(plan, approval)


def in_order(ctx: click.Context, given: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the options as they stand on the command line, each with its value."""
    left = {name: [True] * value if isinstance(value, int) else list(value) for name, value in given.items()}
    return [(name, left[name].pop(0)) for name in ctx.meta[_ORDER] if left.get(name)]
