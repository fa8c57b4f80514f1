"""One task of an application's own program, in a task of Spark: its records go in, and what it writes comes out.

What it writes to its changelogs is compared with what they hold, and the difference is staged. What it writes to repartition topics goes
into files, from where the tasks of the next sub-topology read it: each task writes a file for each partition.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, OperationFailed
from kops.spark.programs.disturbed import Runs, disturb
from kops.spark.programs.models import FAILURE, ProgramTask, Run
from kops.spark.programs.stores import staged
from kops.spark.programs.task_run import Way, run_once

if TYPE_CHECKING:
    import pyarrow

    from kops.spark.reading.batch_source import Read

SCHEMA = "facts string"
"""What a task returns: one row of JSON."""


def run_task(run: Run, task: ProgramTask, read: Read) -> pyarrow.Table:
    """Run a task; return its row.

    :raises KopsError: which is also in the file ``FAILURE``, since Spark keeps only its text
    """
    return facts_row(run, f"task {task.name}", lambda: _facts(run, task, read))


def sample_task(run: Run, task: ProgramTask, read: Read, facts: Mapping[str, Any] | None) -> pyarrow.Table:
    """Give a task that has run a sample of its input, as it is and disturbed; return a row as ``run_task`` does, of what that shows.

    :param facts: of its run; None: it is given nothing
    :raises KopsError: as ``run_task``
    """

    def make() -> dict[str, Any]:
        if facts is None:
            return {"task": task.name}
        of_task, stores = disturb(Runs(run, task, read), None, facts, _lost(facts["stores"])).facts(facts["stores"])
        return {"task": task.name, **of_task, "stores": stores}

    return facts_row(run, f"task {task.name}", make)


def facts_row(run: Run, what: str, make: Callable[[], Mapping[str, Any]]) -> pyarrow.Table:
    """Return the row of a task.

    :param what: names it, should it fail
    :param make: runs it, and returns its facts
    :raises KopsError: as ``run_task``
    """
    import pyarrow

    try:
        facts = make()
    except KopsError as error:
        _report_failure(run, error)
        raise
    except Exception as error:
        said = f"{what} of {run.application} failed: {type(error).__name__}: {error}"
        _report_failure(run, OperationFailed(said, trace=traceback.format_exc()))
        raise
    return pyarrow.table({"facts": [json.dumps(facts)]})


def _report_failure(run: Run, error: KopsError) -> None:
    part = run.folder / f".{FAILURE}.{os.getpid()}"
    part.write_text(json.dumps(error.as_json()), encoding="utf-8")
    try:
        os.link(part, run.folder / FAILURE)  # which fails where another task was first
    except FileExistsError:
        pass
    finally:
        part.unlink()


def _facts(run: Run, task: ProgramTask, read: Read) -> dict[str, Any]:
    """Run a task as it is, and stage what it wrote; then disturbed, and compare."""
    written, facts = run_once(run, task, Way(), read)
    stores = {store.name: staged(run, store, task.partition, written, read) for store in task.stores}
    shown, differing = disturb(Runs(run, task, read), written, facts, _lost(stores)).facts(stores)
    on_disk = {*facts["on_disk"]}
    moved = {store.name: {"on_disk": not on_disk.isdisjoint({store.name, store.changelog})} for store in task.stores}
    return {**facts, **shown, "stores": {name: {**stores[name], **differing[name], **moved[name]} for name in stores}}


def _lost(stores: Mapping[str, Mapping[str, Any]]) -> dict[str, list[bytes]]:
    return {name: [bytes.fromhex(key) for key in each["lost"]] for name, each in stores.items()}
