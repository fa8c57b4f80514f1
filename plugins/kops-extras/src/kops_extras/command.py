"""``kops skew``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from kops.plugins.api import Column, Command, Format, OffsetRange, Record, Session, as_text_or_base64, format_named, pass_session
from kops_extras.skew import Measured, measure, sample, tails, verdict

COLUMNS = (Column("partition", "P"), "offsets", "share", "sampled", "keys", Column("hottest_share", "HOTTEST"), "hottest_key")


@click.command(cls=Command)
@click.argument("topic")
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Offsets to read from the end of each partition.",
)
@click.option("--key", "key_name", metavar="FORMAT", help="Format of the keys; text or base64 when not named.")
@pass_session
def skew(session: Session, topic: str, last: int, key_name: str | None) -> None:
    """Show which partitions of TOPIC get more than their share, and their hottest keys."""
    key = format_named(key_name) if key_name else None
    bounds = session.kafka.offsets.bounds(session.kafka.offsets.partitions_of([topic])[topic])
    whole = {partition: OffsetRange(found.log_start_offset, found.log_end_offset) for partition, found in bounds.items()}
    reader = session.kafka.records.read(tails(whole, last))
    session.progress.step(f"reading the end of {topic}")

    def batches() -> Iterator[list[Record]]:
        for batch in reader:
            session.progress.advance(reader.done, reader.total, "offsets")
            yield batch

    measured = measure(whole, sample(batches()))
    session.note(verdict(measured))
    people = session.output_format == "table"
    session.render([_row(topic, one, key, people=people) for one in measured], COLUMNS)


def _row(topic: str, one: Measured, key: Format | None, *, people: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"data": None, "encoding": None}
    if one.hottest is not None:
        shown = {"data": key.show(key.decode(one.hottest)), "encoding": None} if key else as_text_or_base64(one.hottest)
    return {
        "topic": topic,
        "partition": one.partition,
        "offsets": one.offsets,
        "share": f"{one.share:.1%}" if people else round(one.share, 6),
        "sampled": one.sampled,
        "keys": one.keys,
        "hottest_key": shown["data"],
        "hottest_key_encoding": shown["encoding"],
        "hottest_share": f"{one.hottest_share:.1%}" if people else round(one.hottest_share, 6),
        "average_bytes": one.average_bytes,
    }
