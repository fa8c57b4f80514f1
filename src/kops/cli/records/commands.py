"""``kops records``: consume, produce, peek, dead-letters."""

from __future__ import annotations

from typing import Any

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import FORMATS, isolation_option, on_error_option
from kops.cli.frame.session import Session


@click.group(cls=Group)
def group() -> None:
    """Consume and produce records, or peek where a group reads.

    Partitions are named like orders, orders:0 or orders:0,3-5; times like @-1h, @2026-11-20T14:05 (UTC) or @1700000000000.
    """


@group.command()
@click.argument("topic", metavar="TOPIC[:PARTITIONS]")
@click.argument("span", metavar="[FROM..TO]", required=False)
@click.option(
    "--range", "range_option", metavar="FROM..TO", help="start..end, 100..200, @-1h..@-30m, @2026-11-20T14:05..; TO is exclusive."
)
@click.option("--last", type=click.IntRange(1, 10_000), metavar="N", help="The newest N records of all partitions. [default: 10]")
@click.option("-p", "--partitions", metavar="NUMBERS", help="Only these partitions, as 0,3-5: short for TOPIC:PARTITIONS.")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N records; without a range, show the newest N.")
@click.option(
    "--filter",
    "filters",
    metavar="FILTER",
    multiple=True,
    help="Only matching records, in the range or in all; repeatable, all must match.",
)
@click.option("--follow", is_flag=True, help="Continue with new records, until Ctrl-C.")
@click.option("--latest", is_flag=True, help="Only the last record of each key, as compaction would leave it.")
@click.option("--tombstones", is_flag=True, help="With --latest, show deleted keys too.")
@click.option("-k", "--key", "--key-format", "key_name", metavar="FORMAT", help="Format of the keys; text or base64 when not given.")
@click.option("--value", "--value-format", "value_name", metavar="FORMAT", help=f"Format of the values: {FORMATS}")
@click.option("--raw", is_flag=True, help="Write only the values, as unchanged bytes, each followed by a newline.")
@click.option("-f", "--format", "template", metavar="FORMAT", help=r"As kcat: '%t %p %o %T %k %s %h %K %S %R\n'.")
@click.option(
    "--group", "group_id", metavar="GROUP", help="Join this group, read from its offsets, and commit. Otherwise nothing is committed."
)
@on_error_option
@isolation_option
@click.option("--confirm", metavar="CONTEXT", help="With --group, the name of a protected context.")
@click.pass_obj
def consume(session: Session, /, *, topic: str, partitions: str | None, span: str | None, range_option: str | None, **options: Any) -> int:
    """Show records: the newest 10, or those of a range of offsets or times.

    Stops at the log end as of when it starts, unless --follow is given. Joins no group and commits nothing, unless --group is given.

    \b
    Filters: key=abc  key~^a  value.price>100  value.items[0].id!=7
             header.trace-id=abc  value=null (tombstones)  partition=3

    \b
    Examples:
      kops records consume orders @-1h.. --filter 'value.price>100'
      kops records consume orders:0 1200..1210 -o json
      kops records consume orders --follow --format '%p %o %k %s\\n'
    """  # noqa: D301 - click wants a real backspace to keep these lines
    from kops.cli.records.consume import consume as run

    if span is not None and range_option is not None:
        raise click.UsageError("name the range once: as the second argument, or with --range")
    if partitions is not None:
        if ":" in topic:
            raise click.UsageError("name the partitions once: as TOPIC:PARTITIONS, or with --partitions")
        topic = f"{topic}:{partitions}"
    return run(session, topic, span if span is not None else range_option, **options)


@group.command()
@click.argument("topic", metavar="TOPIC")
@click.option("-f", "--file", "files", metavar="FILE", multiple=True, help="Read this file instead of stdin; repeatable.")
@click.option(
    "--input",
    "kind",
    type=click.Choice(["lines", "json", "whole"]),
    default="lines",
    show_default=True,
    help="A value per line; JSON per line, as from `consume -o json`; or all input as one value.",
)
@click.option("-k", "--key", metavar="TEXT", help="The key of every record.")
@click.option("--value", metavar="TEXT", help="Produce one record with this value; read no input.")
@click.option("--tombstone", is_flag=True, help="Produce one record without a value; read no input.")
@click.option("--key-separator", metavar="TEXT", help=r"Lines are key, this, value; \t is a tab.")
@click.option("--null", metavar="TEXT", help="Treat a key or value that equals this text as null; a null value is a tombstone.")
@click.option("--header", "headers", metavar="NAME=VALUE", multiple=True, help="A header of every record; repeatable.")
@click.option("--timestamp", metavar="TIME", help="The time of every record, such as @2026-11-20T14:05. [default: the input's, or now]")
@click.option("-p", "--partition", type=click.IntRange(min=0), metavar="N", help="The partition of every record.")
@click.option("--repartition", is_flag=True, help="Ignore the partitions in JSON lines; the partitioner chooses.")
@click.option(
    "--partitioner",
    type=click.Choice(["murmur2", "crc32", "fnv1a", "random"]),
    default="murmur2",
    show_default=True,
    help="Choose partitions as the Java client, librdkafka or Sarama does, or at random.",
)
@click.option(
    "--acks",
    type=click.Choice(["all", "1"]),
    default="all",
    show_default=True,
    help="Wait for all in-sync replicas, or for the leader only.",
)
@click.option("--key-format", metavar="FORMAT", help="Format to write keys in: string, long, json, ...; unchanged bytes when not given.")
@click.option("--value-format", metavar="FORMAT", help="Format to write values in.")
@click.option(
    "--key-schema", metavar="SCHEMA", help="For avro and json-schema: an id, SUBJECT or SUBJECT:VERSION. [default: TOPIC-key, the latest]"
)
@click.option("--value-schema", metavar="SCHEMA", help="The same for values. [default: TOPIC-value, the latest]")
@click.option("-n", "--dry-run", is_flag=True, help="Read the input and count it; produce nothing.")
@click.option("--confirm", metavar="CONTEXT", help="Confirm a protected context by name instead of at the prompt.")
@click.pass_obj
def produce(session: Session, /, *, topic: str, **options: Any) -> int:
    """Produce records from stdin, files or flags.

    Giving records is the approval: kops does not ask, except in a protected context. A read-only context refuses. Each record is
    acknowledged or reported. What is produced cannot be undone; the journal keeps the offsets.

    \b
    Examples:
      echo 'k1:hello' | kops records produce orders --key-separator :
      kops records produce orders --key k1 --value '{"price": 7}'
      kops records produce orders --key k1 --tombstone
      kops records consume a start.. -o json |
        kops records produce b --input json
    """  # noqa: D301 - click wants a real backspace to keep these lines
    from kops.cli.records.produce import produce as run

    return run(session, topic, **options)


@group.command()
@click.argument("group_id", metavar="GROUP")
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these; repeatable.")
@click.option(
    "--before", type=click.IntRange(0, 1000), default=2, show_default=True, metavar="N", help="Records before the committed offset."
)
@click.option(
    "--after", type=click.IntRange(0, 1000), default=3, show_default=True, metavar="N", help="Records from the committed offset on."
)
@click.option("--key", "--key-format", "key_name", metavar="FORMAT", help="Format of the keys; text or base64 when not given.")
@click.option("--value", "--value-format", "value_name", metavar="FORMAT", help=f"Format of the values: {FORMATS}")
@isolation_option
@click.pass_obj
def peek(session: Session, /, *, group_id: str, topics: tuple[str, ...], **options: Any) -> int:
    """Show the records around a group's committed offsets.

    The record that it reads next, perhaps the one that it fails on, is marked with >. The group is not joined.
    """
    from kops.cli.records.peek import peek as run

    return run(session, group_id, topics, **options)


@group.command("dead-letters")
@click.argument("topic", metavar="[TOPIC[:PARTITIONS]]", required=False)
@click.option("--connector", metavar="CONNECTOR", help="Use the dead-letter topic in this connector's configuration.")
@click.option("--range", "span", metavar="FROM..TO", help="start..end, 100..200, @-1h..; without it, the newest, or with --count all.")
@click.option("--last", type=click.IntRange(1, 10_000), metavar="N", help="The newest N records of all partitions. [default: 10]")
@click.option("--count", is_flag=True, help="Count by cause and task, the most frequent first.")
@click.option(
    "--filter",
    "filters",
    metavar="FILTER",
    multiple=True,
    help="Only matching records, as for `records consume`; repeatable, all must match.",
)
@click.option("--key", "key_name", metavar="FORMAT", help="Format of the keys; keys that do not match are shown as bytes.")
@click.option("--value", "value_name", metavar="FORMAT", help=f"Format of the values: {FORMATS}")
@isolation_option
@click.pass_obj
def dead_letters(session: Session, /, *, topic: str | None, span: str | None, **options: Any) -> int:
    """Show dead letters with their errors in words, or count them by cause and task.

    Understands the error headers of Kafka Connect, Kafka Streams (KIP-1034), share groups (KIP-1191), Spring (listeners, @RetryableTopic
    and Cloud Stream), SmallRye (Quarkus), Silverback and Watermill.

    \b
    Examples:
      kops records dead-letters --connector prices-sink --count
      kops records dead-letters orders.DLT --range @-1h.. -o json
      kops records dead-letters dlq --filter header.__connect.errors.stage=TASK_PUT
    """  # noqa: D301 - click wants a real backspace to keep these lines
    from kops.cli.records.dead_letters import run

    return run(session, topic, span, **options)
