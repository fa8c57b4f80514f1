"""``kops replay``: records sent again."""

from __future__ import annotations

from typing import Any

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, mutation, spark_option, take_over_option
from kops.cli.frame.session import Session
from kops.core.errors import UsageProblem
from kops.core.findings import counted

_OF_CLUSTER = ("context", "bootstrap_server", "properties", "command_config")
"""Settings that belong to the source's cluster: the target of ``--to-context`` has its own."""


@click.group(cls=Group)
def group() -> None:
    """Send records of a topic again, unchanged, transformed or routed: exactly once, with Spark."""


def _changes(given: dict[str, Any]) -> Any:
    """Take from the options those that change records, which ``run`` and ``redrive`` share."""
    from kops.operations.replay.request import Changes, parse_assignments

    return Changes(
        key=given.pop("key_name"),
        value=given.pop("value_name"),
        where=given.pop("where"),
        assignments=parse_assignments(given.pop("assignments")),
        skip=given.pop("skip_undecodable"),
    )


@group.command("run")
@click.argument("source", metavar="SOURCE[:PARTITIONS]")
@click.option("--to", "target", metavar="TOPIC", help="Where all records go.")
@click.option("--to-expression", metavar="SQL", help="Where each record goes; the topics must exist.")
@click.option(
    "--declare", metavar="TOPIC", multiple=True, help="A topic that --to-expression may return; repeatable. [default: found by reading]"
)
@click.option("--range", "span", metavar="FROM..TO", help="Offsets or times: 100..200, @-1h..@-30m, ..500. [default: start..end]")
@click.option("--from-group", metavar="GROUP", help="Begin at this group's offsets.")
@click.option("--until-group", metavar="GROUP", help="End at this group's offsets.")
@click.option("--to-context", metavar="NAME", help="Send to the cluster of this context; the source must be a context too.")
@click.option("--partition-by", metavar="keep|key|SQL", help="Partitions in the target. [default: keep if counts are equal, else key]")
@click.option("--key", "key_name", metavar="FORMAT", default="bytes", help="Format of keys in expressions: string, long, json:DDL, ...")
@click.option("--value", "value_name", metavar="FORMAT", default="bytes", help="The same for values.")
@click.option("--where", metavar="SQL", help="Send only records for which this is true.")
@click.option("--set", "assignments", metavar="FIELD=SQL", multiple=True, help="key, value, timestamp or headers[NAME]; repeatable.")
@click.option("--plugin", "function", metavar="MODULE:FUNCTION", help="A function from DataFrame to DataFrame.")
@click.option("--skip-undecodable", is_flag=True, help="Leave out records that cannot be decoded.")
@click.option("--rate", type=click.FloatRange(min=0.1), metavar="N", help="Records per second in total.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N records in total, partition after partition.")
@click.option(
    "--guarantee", type=click.Choice(["exactly-once", "at-least-once"]), default="exactly-once", show_default=True, help="After a crash."
)
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="For records that are encoded again; copied batches keep theirs.",
)
@click.option("--accept-new-timestamps", "accept_new_times", is_flag=True, help="Allow a target with LogAppendTime.")
@spark_option()
@mutation
@click.pass_obj
def run(session: Session, /, *, to_context: str | None, approval: Approval, master: str | None, **given: Any) -> int:
    """Send records of SOURCE to another topic, or route them to several.

    Key, value, headers and timestamp are preserved unless --set changes them. The end of the range is fixed when the plan is made.
    If a replay is killed or fails, continue it with `kops replay resume`. Expressions are Spark SQL over key, value, timestamp,
    timestamp_ms, topic, partition, offset and headers.
    """
    from dataclasses import replace

    from kops.operations.replay.plans import plan_replay
    from kops.operations.replay.request import ReplayRequest

    partition_by = given.pop("partition_by")
    expression = partition_by if partition_by not in (None, "keep", "key") else None
    changes = replace(_changes(given), topic=given.pop("to_expression"), partition=expression, function=given.pop("function"))
    declared = tuple(name for text in given.pop("declare") for name in text.split(","))
    chosen, source_context = _in_context(session, to_context)
    request = ReplayRequest(
        changes=changes, declared=declared, partition_by=partition_by, source_context=source_context, master=master, **given
    )
    with chosen:
        return chosen.carry_out(plan_replay(chosen, request, look=approval.dry_run), approval)


@group.command("resume")
@click.argument("entry_id", metavar="ID")
@take_over_option
@mutation
@click.pass_obj
def resume(session: Session, *, entry_id: str, take_over: bool, approval: Approval) -> int:
    """Continue a replay that was killed or failed; no record is sent twice. ID may be `last`."""
    from kops.operations.protocol.journal_actions import entry_named, plan_finish

    entry = entry_named(session, session.journal, entry_id)
    if entry.plan.operation not in ("replay.run", "replay.restore", "replay.redrive"):
        raise UsageProblem(
            f"{entry.id} is an entry of {entry.plan.operation}, not of a replay", hint="`kops journal finish` is for entries of every kind"
        )
    return session.carry_out(plan_finish(session, entry, take_over=take_over), approval, finishes=entry.id)


def _in_context(session: Session, name: str | None) -> tuple[Session, str | None]:
    """Return the session of the target, and the context of the source where that is another.

    :raises UsageProblem: when the source is not a context: a later run could not reach it again
    """
    if name is None:
        return Session(session.settings), None
    source = session.connection.name
    if not source or "bootstrap_server" in session.settings:
        raise UsageProblem(
            "--to-context needs the source to be a context too", hint="`kops context add NAME --bootstrap-servers HOST:PORT`"
        )
    own = {key: value for key, value in session.settings.items() if key not in _OF_CLUSTER}
    return Session({**own, "context": name}), source


ARCHIVE_COLUMNS = ("partition", "start", "end", "records", "added")


@group.command("archive")
@click.argument("topic", metavar="TOPIC")
@click.option("--to", metavar="PATH", required=True, help="A folder, or a URI that Spark can access, such as s3a://bucket/orders.")
@click.option("--by", type=click.Choice(["day", "hour"]), help="Folders by day or by hour, of the timestamps in UTC. [default: day]")
@click.option("--range", "span", metavar="FROM..TO", help="Only this range: 100..200, @-2d.., ..@-1h. [default: all that is new]")
@click.option("--accept-gap", is_flag=True, help="Continue even if records were deleted before they were archived.")
@spark_option()
@click.pass_obj
def archive(session: Session, /, *, topic: str, to: str, **given: Any) -> int:
    """Append a topic's new records to an archive: Parquet by day or hour.

    It includes the topic's settings and the groups' committed offsets, so that `kops replay restore` can bring everything back. Run it
    again, and it continues where it ended, without gap or overlap. A killed run leaves the archive unchanged. Aborted records are left out.
    """
    from kops.operations.archive.take import described, take_archive

    found, run, notes = take_archive(session, topic, to, **given)
    body = described(found, run, to)
    if session.output_format in ("json", "yaml"):
        session.render_object(body)
    else:
        session.render(body["partitions"], ARCHIVE_COLUMNS)
    session.note(*notes)
    new = body["records_added"]
    added = f"{counted(new, 'record')} more {'is' if new == 1 else 'are'}" if run else "nothing is new; all is"
    session.note(f"{added} in {to}; `kops replay restore {to} --to TOPIC` brings them back")
    return 0


@group.command("restore")
@click.argument("path", metavar="PATH")
@click.option("--to", "target", metavar="TOPIC", required=True, help="The topic; created with the archived settings if missing.")
@click.option("--groups", metavar="GLOB", multiple=True, help="Commit these groups' offsets, translated; repeatable.")
@click.option("--accept-new-timestamps", "accept_new_times", is_flag=True, help="Allow a target with LogAppendTime.")
@click.option("--rate", type=click.FloatRange(min=0.1), metavar="N", help="Records per second in total.")
@spark_option()
@mutation
@click.pass_obj
def restore(session: Session, /, *, path: str, approval: Approval, **given: Any) -> int:
    """Send the records of an archive to a topic.

    Partitions, order, keys, values, headers and timestamps are those of the archive. A group's offset becomes that of the same record in
    the target. Continue a killed restore with `kops replay resume`; `kops undo` deletes what was sent to an empty topic.
    """
    from kops.operations.replay.restore_plan import plan_restore

    return session.carry_out(plan_restore(session, path, **given), approval)


@group.command("redrive")
@click.argument("source", metavar="DLQ[:PARTITIONS]")
@click.option("--cause", "causes", metavar="TEXT", multiple=True, help="Only those whose cause has this text; repeatable.")
@click.option("--range", "span", metavar="FROM..TO", help="Of the dead letters: 100..200, @-1h.. [default: all]")
@click.option("--where", metavar="SQL", help="Only those for which this is true.")
@click.option("--set", "assignments", metavar="FIELD=SQL", multiple=True, help="key, value, timestamp or headers[NAME]; repeatable.")
@click.option("--key", "key_name", metavar="FORMAT", default="bytes", help="Format of keys in expressions: string, long, json:DDL, ...")
@click.option("--value", "value_name", metavar="FORMAT", default="bytes", help="The same for values.")
@click.option("--skip-undecodable", is_flag=True, help="Leave out records that cannot be decoded.")
@click.option("--route", metavar="TOPIC", help="Topic for dead letters that do not name their origin.")
@click.option("--to-topics", metavar="GLOB", multiple=True, help="Topics that headers may name; repeatable. [with --yes: none]")
@click.option(
    "--max-attempts",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Skip dead letters that were sent back this many times.",
)
@click.option("--parked", metavar="TOPIC", help="Copy skipped ones to this topic, unchanged.")
@click.option("--rate", type=click.FloatRange(min=0.1), metavar="N", help="Records per second in total.")
@click.option("--accept-new-timestamps", "accept_new_times", is_flag=True, help="Allow targets with LogAppendTime.")
@click.option("--take-over", is_flag=True, help="Continue after a killed redrive whose journal is gone.")
@click.option("--again", is_flag=True, help="Include dead letters that were sent back before.")
@spark_option()
@mutation
@click.pass_obj
def redrive(session: Session, /, *, source: str, approval: Approval, **given: Any) -> int:
    """Send dead letters back to where they came from.

    Understands the error headers that `kops records dead-letters` does. The plan counts dead letters by cause, with a sample of each;
    --dry-run stops there. Error headers are removed, and kops-redrive-attempts counts up. Each is sent once: the next redrive leaves it
    out. Expressions are as for `kops replay run`, and can use dead_letter (cause, topic, ...) and attempts.
    """
    from kops.operations.replay.redrive_plan import RedriveRequest, plan_redrive

    unattended = approval.yes and not (approval.dry_run or approval.plan_out)
    request = RedriveRequest(source=source, changes=_changes(given), unattended=unattended, **given)
    return session.carry_out(plan_redrive(session, request, report=session.note), approval)
