"""Spark's progress, shown while it works."""

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
"""What a task reports besides its count while a broker quota throttles it."""

_SECONDS = 0.3
_ENDED = ("COMPLETE", "SKIPPED")


@contextlib.contextmanager
def watching(
    progress: Progress, done: Callable[[], int], total: int | None, unit: str, *, held: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Poll progress in a thread, and show it.

    :param done: its exceptions are ignored; it must not keep raising them
    :param held: whether a broker quota throttles the work, so that the user can see why it is slow
    """
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(_SECONDS):
            with contextlib.suppress(Exception):
                so_far = done()
                if so_far > 0:  # a partition that is read again counts from 0 again
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
    """Return a function that counts the records that Spark has read from its sources from now on.

    From Spark's own bookkeeping, which works whether or not the web interface is on; running tasks report to it with every heartbeat.
    Spark Connect has none, so the count stays 0.
    """
    try:
        all_stages = stages_of(session)
        ended, last = 0, -1

        def since_last() -> list[tuple[int, bool, int]]:
            """Return the stages after the last one: number, whether it has ended, records. Spark keeps a thousand, newest first."""
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
            while found and found[0][1]:  # ended stages are not queried again
                last, _, records = found.pop(0)
                ended += records
            return ended + sum(records for _, _, records in found)

        before = total()
    except Exception:  # progress must not break the work
        return lambda: 0
    return lambda: total() - before


def reporting(records: Iterable[RecordColumns], folder: str | None, name: str) -> Iterator[RecordColumns]:
    """Pass records on, and write their number to a file in a directory: Spark does not know what Python tasks read."""
    count = 0
    for columns in records:
        yield columns
        count += len(columns)
        if folder is not None:
            with contextlib.suppress(OSError):
                Path(folder, name).write_text(str(count), encoding="ascii")


def records_reported(folder: str) -> int:
    return sum(int(words[0]) for words in _reported(folder))


def any_held(folder: str) -> bool:
    return any(HELD in words for words in _reported(folder))


def _reported(folder: str) -> Iterator[list[str]]:
    for file in Path(folder).iterdir():
        with contextlib.suppress(OSError):
            words = file.read_text(encoding="ascii").split()
            if words:  # it may be incomplete, while it is being written
                yield words
