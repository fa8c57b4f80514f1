"""``kops replay archive`` and ``kops replay restore``."""

from __future__ import annotations

from typing import Any

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.options import Approval, mutation, spark_option
from kops.cli.frame.session import Session
from kops.core.findings import counted

COLUMNS = ("partition", "start", "end", "records", "added")


@click.command("archive", cls=Command)
@click.argument("topic", metavar="TOPIC")
@click.option("--to", metavar="PATH", required=True, help="A folder, or a URI that Spark can access, such as s3a://bucket/orders.")
@click.option("--by", type=click.Choice(["day", "hour"]), help="Folders by day or by hour, of the timestamps in UTC. [default: day]")
@click.option("--range", "span", metavar="FROM..TO", help="No more than this: 100..200, @-2d.., ..@-1h. [default: all that is new]")
@click.option("--accept-gap", is_flag=True, help="Continue although unarchived records were deleted.")
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
        session.render(body["partitions"], COLUMNS)
    for note in notes:
        session.note(note)
    new = body["records_added"]
    added = f"{counted(new, 'record')} more {'is' if new == 1 else 'are'}" if run else "nothing is new; all is"
    session.note(f"{added} in {to}; `kops replay restore {to} --to TOPIC` brings them back")
    return 0


@click.command("restore", cls=Command)
@click.argument("path", metavar="PATH")
@click.option("--to", "target", metavar="TOPIC", required=True, help="The topic; created with the archived settings if missing.")
@click.option("--groups", "groups", metavar="GLOB", multiple=True, help="Commit these groups' offsets, translated; repeatable.")
@click.option("--accept-new-timestamps", "accept_new_times", is_flag=True, help="The target may have LogAppendTime.")
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
