"""Where the tasks of a replay run that move whole batches: in Spark's, or, on this machine alone, in processes without Spark.

Such a task reads and sends by itself, so that Spark only starts it; and its start takes longer than to move a million records.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kops.core.errors import OperationFailed
from kops.gateways.wire.kafka_python import CONNECTION_MODULE, REQUEST_MODULES

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

T = TypeVar("T")
_LOADED = (
    "google_crc32c",
    CONNECTION_MODULE,
    *REQUEST_MODULES,
    "kops.gateways.wire.batch_consumer",
    "kops.spark.replay.copy",
    "kops.spark.replay.parts",
    "kops.spark.replay.read",
    "kops.gateways.wire.wide_sockets",
    "pyarrow.compute",
)
"""What tasks need, loaded once before they are forked."""
_GONE_SECONDS = 10.0


class Tasks(Protocol):
    """Runs tasks; each is a call without arguments that can be pickled, as what it returns can."""

    def run(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Return what they return, in their order."""


@dataclass(frozen=True)
class SparkTasks:
    """Runs them in tasks of Spark."""

    session: SparkSession

    def run(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Return what they return, in their order."""
        import pickle

        given = list(tasks)

        def answer(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            import pyarrow

            for number in (row for batch in batches for row in batch.column(0).to_pylist()):
                arrays = [pyarrow.array([number], pyarrow.int64()), pyarrow.array([pickle.dumps(given[number]())], pyarrow.binary())]
                yield pyarrow.RecordBatch.from_arrays(arrays, ["number", "answer"])

        from kops.spark.driver.failures import explained

        with explained("run the tasks of a replay"):
            rows = self.session.range(0, len(given), 1, max(1, len(given))).mapInArrow(answer, "number bigint, answer binary").collect()
        found = {row.number: pickle.loads(bytes(row.answer)) for row in rows}  # noqa: S301 - of our own tasks
        return [found[number] for number in range(len(given))]


class Processes:
    """Runs them in processes of this machine, which end with this one.

    :param most: how many at a time
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._context: Any = multiprocessing.get_context("forkserver")

    def begin(self) -> None:
        """Load what tasks need, in the background."""
        from multiprocessing import forkserver

        self._context.set_forkserver_preload(list(_LOADED))
        forkserver.ensure_running()

    def run(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Return what they return, in their order.

        :raises OperationFailed: when one raises, or its process ends; all others are ended then, as with Ctrl-C
        """
        self.begin()
        waiting = deque(enumerate(tasks))
        running: dict[Connection, tuple[int, Any]] = {}
        found: dict[int, T] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.most:
                    number, task = waiting.popleft()
                    ours, theirs = self._context.Pipe(duplex=False)
                    process = self._context.Process(target=_run, args=(task, theirs), daemon=True)
                    process.start()
                    theirs.close()
                    running[ours] = number, process
                answered = set(wait(list(running)))
                for connection in [each for each in running if each in answered]:
                    number, process = running[connection]
                    found[number] = _answer(connection, process)
                    del running[connection]
        finally:
            _end([process for _, process in running.values()])
        return [found[number] for number in range(len(tasks))]


def _answer(connection: Connection, process: Any) -> Any:
    try:
        worked, answer = connection.recv()
    except EOFError:
        process.join(_GONE_SECONDS)
        raise OperationFailed(f"a process that sent records ended with {process.exitcode}", hint="was it out of memory?") from None
    process.join(_GONE_SECONDS)
    if not worked:
        raise OperationFailed(answer, hint="--debug shows more")
    return answer


def _end(processes: Sequence[Any]) -> None:
    """End processes, which abort what they have open; those that do not in time are killed."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(_GONE_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()


def _run(task: Callable[[], Any], answers: Connection) -> None:
    """Run a task in its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all of a terminal: the first process decides
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer = True, task()
    except Exception as error:  # whatever it is, it is told where somebody sees it
        answer = False, f"{type(error).__name__}: {error}"
    with contextlib.suppress(BrokenPipeError):
        answers.send(answer)
    answers.close()


def _end_with_parent() -> None:
    """End at once when the process that wanted the task is gone: what is open is ended by whoever goes on with it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
