"""``kops connect``: pause, resume, stop, restart, alter, delete."""

from __future__ import annotations

import click

from kops.cli.connect.shared import connectors, group, wait_option
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session


def _add_verb(verb: str, text: str) -> None:
    """Add a verb that changes the state of connectors."""

    @group.command(verb, help=text)
    @connectors()
    @wait_option
    @mutation
    @click.pass_obj
    def change_state(session: Session, /, *, patterns: tuple[str, ...], regex: bool, wait: str, approval: Approval) -> int:
        from kops.core.durations import parse_duration
        from kops.operations.connect.states import plan_state

        plan = plan_state(session, patterns, verb, regex=regex, wait_ms=parse_duration(wait, what="duration for --wait"))
        return session.carry_out(plan, approval)


_add_verb("pause", "Pause connectors: their tasks stay assigned but idle.")
_add_verb("resume", "Resume paused and stopped connectors, and report tasks that fail.")
_add_verb("stop", "Stop connectors: their tasks are removed, configuration and offsets stay (KIP-875).")


@group.command("restart")
@connectors()
@click.option("--failed", "only_failed", is_flag=True, help="Only failed connectors and tasks.")
@click.option("--task", "tasks", type=click.IntRange(min=0), metavar="N", multiple=True, help="Only this task; repeatable.")
@wait_option
@mutation
@click.pass_obj
def restart(
    session: Session,
    /,
    *,
    patterns: tuple[str, ...],
    regex: bool,
    only_failed: bool,
    tasks: tuple[int, ...],
    wait: str,
    approval: Approval,
) -> int:
    """Restart connectors with their tasks, and wait until they run.

    If something fails again, its cause is shown and the exit code is 1. `kops connect restart '*' --failed` restarts all that failed.
    """
    from kops.core.durations import parse_duration
    from kops.operations.connect.restart import plan_restart

    if only_failed and tasks:
        raise click.UsageError("--failed and --task are mutually exclusive", click.get_current_context())
    wait_ms = parse_duration(wait, what="duration for --wait")
    plan = plan_restart(session, patterns, regex=regex, only_failed=only_failed, tasks=tasks, wait_ms=wait_ms)
    return session.carry_out(plan, approval)


@group.command("alter")
@connectors()
@click.option("--config", "settings", metavar="KEY=VALUE", multiple=True, help="A setting to set; repeatable.")
@click.option("--delete-config", "remove", metavar="KEY", multiple=True, help="A setting to remove; repeatable.")
@mutation
@click.pass_obj
def alter(
    session: Session,
    /,
    *,
    patterns: tuple[str, ...],
    regex: bool,
    settings: tuple[str, ...],
    remove: tuple[str, ...],
    approval: Approval,
) -> int:
    """Change settings of connectors; settings that are not named stay as they are.

    The plugins validate them first. Secrets do not belong on a command line: use references such as ${file:/path:key}, or apply a file.
    """
    from kops.cli.topics.shared import key_and_value
    from kops.operations.connect.apply import plan_alter_settings

    return session.carry_out(plan_alter_settings(session, patterns, dict(map(key_and_value, settings)), remove, regex=regex), approval)


@group.command("delete")
@connectors()
@mutation
@click.pass_obj
def delete(session: Session, /, *, patterns: tuple[str, ...], regex: bool, approval: Approval) -> int:
    """Delete connectors; their offsets stay.

    To approve, type the connector's name, or 'N connectors' for several; --confirm NAME or --confirm '3 connectors' does it in scripts.
    """
    from kops.operations.connect.apply import plan_delete

    return session.carry_out(plan_delete(session, patterns, regex=regex), approval)
