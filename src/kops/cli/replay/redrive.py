"""``kops replay redrive``."""

from __future__ import annotations

from typing import Any

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.options import Approval, mutation, spark_option
from kops.cli.frame.session import Session


@click.command("redrive", cls=Command)
@click.argument("source", metavar="DLQ[:PARTITIONS]")
@click.option("--cause", "causes", metavar="TEXT", multiple=True, help="Only those whose cause has this text; repeatable.")
@click.option("--range", "span", metavar="FROM..TO", help="Of the dead letters: 100..200, @-1h.. [default: all]")
@click.option("--where", metavar="SQL", help="Only those for which it is true.")
@click.option("--set", "assignments", metavar="FIELD=SQL", multiple=True, help="key, value, timestamp or headers[NAME]; repeatable.")
@click.option("--key", "key_name", metavar="FORMAT", default="bytes", help="What expressions see of keys: string, long, json:DDL, ...")
@click.option("--value", "value_name", metavar="FORMAT", default="bytes", help="The same for values.")
@click.option("--skip-undecodable", is_flag=True, help="Leave out records that cannot be decoded.")
@click.option("--route", metavar="TOPIC", help="Target of dead letters that do not name their origin.")
@click.option("--to-topics", metavar="GLOB", multiple=True, help="Topics that headers may name; repeatable. [with --yes: none]")
@click.option(
    "--max-attempts", type=click.IntRange(min=1), default=3, show_default=True, help="Leave dead letters that were sent back this often."
)
@click.option("--parked", metavar="TOPIC", help="Copy those to this topic instead, unchanged.")
@click.option("--rate", type=click.FloatRange(min=0.1), metavar="N", help="Records per second in total.")
@click.option("--accept-new-timestamps", "accept_new_times", is_flag=True, help="A target may have LogAppendTime.")
@click.option("--take-over", is_flag=True, help="Continue after a killed redrive whose journal is gone.")
@click.option("--again", is_flag=True, help="Include dead letters that were sent back before.")
@spark_option()
@mutation
@click.pass_obj
def redrive(session: Session, /, *, source: str, approval: Approval, **given: Any) -> int:
    """Send dead letters back to where they came from.

    Understands error headers of Kafka Connect, Kafka Streams, share groups and Spring. The plan counts dead letters by cause, with a
    sample of each; --dry-run stops there. Error headers are removed, and kops-redrive-attempts counts up. Each is sent once: the next
    redrive leaves it out. Expressions are as for `kops replay run`, and can use dead_letter (cause, topic, ...) and attempts.
    """
    from kops.operations.replay.redrive_plan import RedriveRequest, plan_redrive
    from kops.operations.replay.request import Changes, parse_assignments

    changes = Changes(
        key=given.pop("key_name"),
        value=given.pop("value_name"),
        where=given.pop("where"),
        assignments=parse_assignments(given.pop("assignments")),
        skip=given.pop("skip_undecodable"),
    )
    unattended = approval.yes and not (approval.dry_run or approval.plan_out)
    request = RedriveRequest(source=source, changes=changes, unattended=unattended, **given)
    return session.carry_out(plan_redrive(session, request, report=session.note), approval)
