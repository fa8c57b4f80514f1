"""What a replay would send, read and not sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kops.core.errors import Refused
from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.records.models import OffsetRange
from kops.formats.base import as_text_or_base64
from kops.operations.replay.jobs import Work
from kops.operations.replay.source import Source

if TYPE_CHECKING:
    from kops.spark.replay.jobs import Part

SAMPLES = 5
SAMPLE_WIDTH = 60


def topics_by_reading(work: Work, parts: Sequence[Part]) -> list[str]:
    """Return the topics that the records of a range go to.

    :raises Refused: when a record goes nowhere
    """
    from kops.spark.driver.failures import explained

    if not parts:
        return []
    work.services.progress.step(f"reading {work.arguments['source']} to see where its records go")
    rows = work.rows(parts)
    with explained(f"find the topics of {work.arguments['source']}"):
        found = [row.topic for row in rows.select("topic").distinct().collect()]
    if None in found:
        raise Refused(
            f"--to-expression {work.changes.topic} is null for some records, so they go nowhere",
            hint="leave them out with --where, or give them a topic with coalesce(...)",
        )
    return sorted(found)


def preview(work: Work, source: Source, parts: Sequence[Part]) -> tuple[dict[str, Any], list[str]]:
    """Return counts and samples of what would be sent, and sentences that say the same."""
    work.services.progress.step(f"reading {work.arguments['source']}")
    counts, samples = _of_rows(work, parts) if work.changes.some else _of_batches(work, source, parts)
    limit = work.arguments["limit"]
    total = sum(counts.values())
    shown = [f"{record['topic']}: {sample_text(record['key'])} = {sample_text(record['value'])}" for record in samples]
    places = "; ".join(f"{place} {count:,}" for place, count in list(counts.items())[:SAMPLES])
    read, sent = sum(part.end - part.start for part in parts), min(total, limit or total)
    notes = [
        f"read: {counted(read, 'offset')}; to be sent: {counted(sent, 'record')} ({places})",
        *(f"sample: {line}" for line in shown),
    ]
    return {"records": min(total, limit or total), "counts": counts, "samples": samples}, notes


def _of_rows(work: Work, parts: Sequence[Part]) -> tuple[dict[str, int], list[dict[str, Any]]]:
    from kops.spark.driver.failures import explained

    rows = work.rows(parts)
    with explained(f"read {work.arguments['source']}"):
        counts = {row.topic: row["count"] for row in rows.groupBy("topic").count().orderBy("topic").collect()}
        samples = rows.limit(SAMPLES).collect()
    return counts, [_sample(row.topic, row.key, row.value, row.timestamp_ms) for row in samples]


def _of_batches(work: Work, source: Source, parts: Sequence[Part]) -> tuple[dict[str, int], list[dict[str, Any]]]:
    from kops.spark.replay.tasks import counted

    topic, target = work.arguments["source"], work.arguments["anchor"]
    count = counted(work.engine.session, work.job(len(parts)), parts)
    ranges = {TopicPartition(topic, part.partition): OffsetRange(part.start, part.end) for part in parts[:1]}
    records = next((batch for batch in source.kafka.records.read(ranges) if batch), [])[:SAMPLES]
    return {target: count}, [_sample(target, record.key, record.value, record.timestamp) for record in records]


def _sample(topic: str, key: bytes | None, value: bytes | None, timestamp: int | None) -> dict[str, Any]:
    def shown(data: bytes | None) -> Any:
        return None if data is None else as_text_or_base64(bytes(data))

    return {"topic": topic, "key": shown(key), "value": shown(value), "timestamp_ms": timestamp}


def sample_text(shown: Any) -> str:
    """Return a key or a value of a sample in so many characters as a line has room for."""
    text = "null" if shown is None else " ".join(str(shown["data"]).split())
    return text if len(text) <= SAMPLE_WIDTH else f"{text[: SAMPLE_WIDTH - 1]}…"
