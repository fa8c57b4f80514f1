"""The root command, and the only place where an exception becomes an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from kops import __version__
from kops.cli.frame.lazy import LazyGroup
from kops.cli.frame.options import META
from kops.core.stops import kept_stops, stop_on_signals
from kops.output.guard import guarded_stderr

SECTIONS = {
    "Look": {
        "diagnose": ("kops.cli.diagnose:diagnose", "What is wrong with groups and topics, and what to do about it."),
    },
    "Look and change": {
        "cluster": ("kops.cli.cluster:group", "The whole cluster: describe, health, features, quorum; as files."),
        "brokers": ("kops.cli.brokers:group", "Brokers: list, settings, log directories, drain, unregister."),
        "topics": ("kops.cli.topics:group", "Topics: list, describe, create, change, move, delete; apply files."),
        "records": ("kops.cli.records.commands:group", "Consume, produce, and peek where a group reads."),
        "groups": ("kops.cli.groups.commands:group", "Consumer groups: list, describe, lag, delete."),
        "share-groups": ("kops.cli.share_groups:group", "Share groups: lag, start offsets, delete."),
        "offsets": ("kops.cli.offsets.commands:group", "Committed offsets: show, seek, reset, export."),
        "acls": ("kops.cli.acls:group", "Who may do what: list, grant, revoke, explain, audit, export."),
        "transactions": ("kops.cli.transactions:group", "Transactions: list, describe, abort those that hang."),
        "users": ("kops.cli.users:group", "SCRAM users: list, create, alter, delete."),
        "tokens": ("kops.cli.tokens:group", "Delegation tokens: list, create, renew, expire."),
        "quotas": ("kops.cli.quotas:group", "Quotas of users, client ids and addresses: list, set, remove, explain."),
        "client-metrics": ("kops.cli.client_metrics:group", "Subscriptions to the metrics of clients: list, set, delete."),
        "connect": ("kops.cli.connect:group", "Kafka Connect: plugins, connectors from files, states, offsets."),
        "schemas": ("kops.cli.schemas:group", "Schemas of the registry: list, show, register, check, delete, config."),
        "replay": ("kops.cli.replay:group", "Send records of a topic again: unchanged, transformed or routed."),
        "apply": ("kops.cli.journal:apply", "Run a plan saved with --plan-out."),
        "journal": ("kops.cli.journal:group", "What was changed, by whom, and what is unfinished."),
        "undo": ("kops.cli.journal:undo", "Undo a change from the journal."),
    },
    "Kafka Streams": {
        "streams": ("kops.cli.streams.commands:group", "Applications: list, describe, reset, delete, capture."),
        "state": ("kops.cli.state.commands:group", "Rebuild, verify, query, snapshot and move state."),
        "changelog": ("kops.cli.changelog:group", "Read the changelog of a store."),
    },
    "This machine": {
        "context": ("kops.cli.context.commands:group", "Clusters that kops knows, and how to reach them."),
        "sandbox": ("kops.cli.sandbox.commands:group", "A real Kafka on this machine."),
        "demo": ("kops.cli.sandbox.commands:demo", "The tour: an application's state broken and rebuilt."),
        "doctor": ("kops.cli.doctor:doctor", "Check what kops needs on this machine."),
        "plugins": ("kops.cli.plugins:group", "Installed plugins."),
        "completion": ("kops.cli.completion:completion", "Shell completion for bash, zsh and fish."),
        "help": ("kops.cli.help:help_", "Help for a noun or a verb."),
        "version": ("kops.cli.help:version", "The version of kops."),
    },
}
"""The nouns of each section of the root's help: where each is defined, and a line about it."""
NOUNS = {name: noun for nouns in SECTIONS.values() for name, noun in nouns.items()}

WIDEST_HELP = 80
"""Columns: lines of text are not read more easily where they are longer."""

COMPLETION = "_KOPS_COMPLETE"
"""Set by a shell that asks for completion (click's ``_PROGRAM_COMPLETE``)."""


def plugin_command(name: str) -> click.Command | None:
    """Return a plugin's command, looked up only when kops has none of that name."""
    from kops.plugins.loader import load_command

    command: click.Command | None = load_command(name)
    return command


@click.group(cls=LazyGroup, sections=SECTIONS, plugin=plugin_command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="kops")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Operate Kafka: topics, groups, offsets, and the state of Kafka Streams applications.

    Nothing changes by surprise: every change is planned, shown, approved, verified and recorded, and its plan says whether it
    can be undone.

    First tell kops where the brokers are, or start some: `kops sandbox up`.

    \b
      kops context add prod --bootstrap-servers b1:9092
      kops diagnose
      kops groups lag 'billing-*'
      kops offsets reset billing --to-datetime 2026-11-20T14:05 --dry-run
    """  # noqa: D301 - click wants a real backspace to keep these lines
    from kops.cli.frame.session import Session
    from kops.output.guard import guarded_stdout
    from kops.output.markup import markup_stdout

    stop_on_signals()
    ctx.obj = ctx.with_resource(Session(ctx.meta.setdefault(META, {})))
    ctx.with_resource(guarded_stdout(lambda: ctx.obj.output_format == "table"))
    ctx.with_resource(markup_stdout(lambda: ctx.obj.markup))
    if os.environ.get("NO_COLOR"):
        ctx.color = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run kops and return its exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    with guarded_stderr():
        return _run(argv)


def _run(argv: list[str]) -> int:
    try:
        with kept_stops():
            code: Any = cli.main(argv, prog_name="kops", standalone_mode=False, terminal_width=_columns())
            sys.stdout.flush()
    except BrokenPipeError as error:
        if not _reader_has_gone():  # it is a pipe to something else: a worker, a JVM
            from kops.cli.frame.failure import report

            return report(error, argv)
        # The reader has gone (`| head`): nothing is left to say, not even at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as gone:  # click's own answer to a closed pipe
        return gone.code if isinstance(gone.code, int) else 1
    except BaseException as error:
        if COMPLETION in os.environ:
            return 0  # a shell completes a line that a person types: nothing may appear in it
        from kops.cli.frame.failure import report

        return report(error, argv)
    return code if isinstance(code, int) else 0


def _reader_has_gone() -> bool:
    import select

    for stream in (sys.stdout, sys.stderr):
        watched = select.poll()
        try:
            watched.register(stream.fileno(), 0)
        except (OSError, ValueError):  # no pipe at all
            continue
        if watched.poll(0):  # asked for no event: only a lost reader is one
            return True
    return False


def _columns() -> int:
    """Return the width of help as click finds it, but without ``shutil``, which imports every compression."""
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(1).columns or WIDEST_HELP
    except (ValueError, OSError):
        columns = WIDEST_HELP
    return max(min(columns, WIDEST_HELP) - 2, 50)
