"""What tasks record about the pieces of topics that they read as whole batches, besides the records: gaps, and the latest timestamp."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_FOLDER = "seen"


@dataclass(frozen=True)
class InputSeen:
    """A range of a partition that was read completely.

    :param gaps: the first ranges of offsets without a record, other than transaction markers
    :param latest: the greatest timestamp of its records in milliseconds since the epoch; None: there is none
    :param aborted: whether a transaction was aborted there
    """

    gaps: tuple[tuple[int, int], ...] = ()
    latest: int | None = None
    aborted: bool = False


def note(folder: str, place: tuple[str, int, int, int], seen: InputSeen) -> None:
    """Record what was seen in a piece; runs in tasks.

    :param place: topic, partition, first offset, and the one after the last
    """
    with contextlib.suppress(OSError):
        Path(folder, _FOLDER).mkdir(exist_ok=True)
        body = {"place": place, "gaps": seen.gaps, "latest": seen.latest, "aborted": seen.aborted}
        Path(folder, _FOLDER, "-".join(map(str, place))).write_text(json.dumps(body), encoding="utf-8")


def seen_of(folder: str, topic: str, partition: int, start: int, end: int) -> InputSeen | None:
    """Return what tasks recorded about a range; None unless they have read all of it in this way."""
    at, latest, aborted = start, None, False
    gaps: list[tuple[int, int]] = []
    for first, last, seen in sorted(_noted(folder, topic, partition), key=lambda piece: piece[:2]):
        if first == at and last <= end:
            at = last
            gaps += seen.gaps
            aborted = aborted or seen.aborted
            latest = seen.latest if latest is None or seen.latest is None else max(latest, seen.latest)
    return InputSeen(tuple(gaps), latest, aborted) if at == end and start < end else None


def _noted(folder: str, topic: str, partition: int) -> Iterator[tuple[int, int, InputSeen]]:
    for file in Path(folder, _FOLDER).glob(f"*-{partition}-*"):
        with contextlib.suppress(OSError, ValueError):
            body = json.loads(file.read_text(encoding="utf-8"))
            name, number, start, end = body["place"]
            if (name, number) == (topic, partition):
                gaps = tuple((first, last) for first, last in body["gaps"])
                yield start, end, InputSeen(gaps, body["latest"], body["aborted"])


MOST_BYTES = 128 << 20
"""Maximum number of bytes fetched, compressed: a fraction of a second on one machine."""


def scan(settings: Mapping[str, str], topic: str, ranges: Mapping[int, tuple[int, int]]) -> dict[int, InputSeen]:
    """Return what was seen in partitions, up to the first gap of each; partitions beyond the byte limit are left out.

    :param settings: librdkafka's, for which ``connections.can_connect`` is true
    :param ranges: partition -> (first offset, the offset after the last)
    """
    from kops.gateways.wire.batch_consumer import BatchConsumer

    found, left = {}, MOST_BYTES
    for partition, (start, end) in sorted(ranges.items()):
        with contextlib.closing(BatchConsumer(topic, settings)) as consumer:
            for data, _ in consumer.batches(partition, start, end):
                left -= len(data)
                if consumer.gaps.found or left < 0:
                    break
            if left >= 0 or consumer.gaps.found:
                found[partition] = InputSeen(tuple(consumer.gaps.found), aborted=consumer.aborted)
        if left < 0:
            break
    return found
