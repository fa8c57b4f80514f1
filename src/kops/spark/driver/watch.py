"""How far Spark is, shown while it works."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kops.core.progress import Progress
from kops.spark.driver.pyspark_internals import stages as stages_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kops.formats.batches.columns import RecordColumns

HELD = "held"
"""What a task reports beside its count while a quota of the brokers slows it down."""

_SECONDS = 0.3
_ENDED = ("COMPLETE", "SKIPPED")


@contextlib.contextmanager
def watching(
    progress: Progress, done: Callable[[], int], total: int | None, unit: str, *, held: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Ask repeatedly how far something is, in a thread, and show it.

    :param done: must not raise for long; what it raises is passed over
    :param held: tells whether a quota of the brokers slows it down, so that it is clear why it is slow
    """
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(_SECONDS):
            with contextlib.suppress(Exception):
                so_far = done()
                if so_far:
                    units = f"{unit} (slowed down by a quota)" if held() else unit
                    progress.advance(so_far if total is None else min(so_far, total), total, units)

    thread = threading.Thread(target=watch, name="kops-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def records_read(session: SparkSession) -> Callable[[], int]:
    """Return a function that counts the records that Spark read from its sources since now.

    Spark's own bookkeeping, which has it whether or not the web interface is on; of running tasks it hears with every
    heartbeat. Through Spark Connect there is no such thing, and it counts nothing.
    """
    try:
        all_stages = stages_of(session)
        ended, last = 0, -1

        def since_last() -> list[tuple[int, bool, int]]:
            """Return the stages after the last: number, whether it has ended, records. Spark keeps a thousand, the newest first."""
            stages, found = all_stages(), []
            for index in range(stages.size()):
                stage = stages.apply(index)
                number = int(stage.stageId())
                if number <= last:
                    break
                found.append((number, str(stage.status()) in _ENDED, int(stage.inputRecords())))
            return sorted(found)

        def total() -> int:
            nonlocal ended, last
            found = since_last()
            while found and found[0][1]:  # what has ended is not asked for again
                last, _, records = found.pop(0)
                ended += records
            return ended + sum(records for _, _, records in found)

        before = total()
    except Exception:  # progress must not break the work
        return lambda: 0
    return lambda: total() - before


def reporting(records: Iterable[RecordColumns], folder: str | None, name: str) -> Iterator[RecordColumns]:
    """Pass records on, writing to a file of a folder how many there were; of what Python tasks read, Spark knows nothing."""
    count = 0
    for columns in records:
        yield columns
        count += len(columns)
        if folder is not None:
            with contextlib.suppress(OSError):
                Path(folder, name).write_text(str(count), encoding="ascii")


def records_reported(folder: str) -> int:
    """Return how many records tasks reported as read."""
    return sum(int(words[0]) for words in _reported(folder))


def any_held(folder: str) -> bool:
    """Return whether a task reported that a quota slows it down."""
    return any(HELD in words for words in _reported(folder))


def _reported(folder: str) -> Iterator[list[str]]:
    for file in Path(folder).iterdir():
        with contextlib.suppress(OSError):
            words = file.read_text(encoding="ascii").split()
            if words:  # it may be in the middle of being written
                yield words
