"""``kops cluster``: features upgrade and downgrade, quorum add and remove."""

from __future__ import annotations

import click

from kops.cli.cluster.look import features, quorum
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.core.errors import UsageProblem

id_argument = click.argument("voter", metavar="ID", type=click.IntRange(0, 2**31 - 1))


@features.command("upgrade")
@click.argument("levels", metavar="[FEATURE=LEVEL]...", nargs=-1)
@click.option(
    "--release", metavar="VERSION", help="Raise every feature to what this release sets by default, such as 4.3; not kraft.version."
)
@mutation
@click.pass_obj
def upgrade(session: Session, /, *, levels: tuple[str, ...], release: str | None, approval: Approval) -> int:
    """Raise levels of features, such as group.version=1, or metadata.version=4.3.

    Every broker and controller must support the level. The plan shows what a level brings; one that cannot be lowered again is approved by
    typing the feature's name (--confirm NAME).
    """
    from kops.core.cluster.features import parse_levels
    from kops.operations.cluster.features import plan_upgrade

    if bool(levels) == (release is not None):
        raise UsageProblem("name either levels or --release", hint="`kops cluster features list` shows the levels")
    return session.carry_out(plan_upgrade(session, parse_levels(levels), release), approval)


@features.command("downgrade")
@click.argument("levels", metavar="FEATURE=LEVEL...", nargs=-1, required=True)
@click.option("--unsafe", is_flag=True, help="Let the controllers lose metadata; most versions refuse that.")
@mutation
@click.pass_obj
def downgrade(session: Session, /, *, levels: tuple[str, ...], unsafe: bool, approval: Approval) -> int:
    """Lower levels of features; level 0 disables one. The active controller checks that nothing is lost."""
    from kops.core.cluster.features import parse_levels
    from kops.operations.cluster.features import plan_downgrade

    return session.carry_out(plan_downgrade(session, parse_levels(levels), unsafe=unsafe), approval)


@quorum.command("add")
@id_argument
@click.option("--endpoint", "endpoints", metavar="NAME://HOST:PORT", multiple=True, required=True, help="Where it listens; repeatable.")
@mutation
@click.pass_obj
def add(session: Session, /, *, voter: int, endpoints: tuple[str, ...], approval: Approval) -> int:
    """Make a controller that observes the metadata log a voter. To approve, type its ID (--confirm ID)."""
    from kops.operations.cluster.quorum import plan_add

    return session.carry_out(plan_add(session, voter, endpoints), approval)


@quorum.command("remove")
@id_argument
@mutation
@click.pass_obj
def remove(session: Session, /, *, voter: int, approval: Approval) -> int:
    """Take the vote of a controller, if a majority that keeps up is left. To approve, type its ID (--confirm ID)."""
    from kops.operations.cluster.quorum import plan_remove

    return session.carry_out(plan_remove(session, voter), approval)
