"""The program of a Python worker: a JVM takes longer to start than a task to run, so each worker keeps one between tasks."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from kops.core.errors import KopsError
from kops.formats import runner_frames as frames
from kops.gateways.machine.program import Program, refuse_another_application, refuse_another_topology
from kops.gateways.machine.program_travel import on_host, unpacked
from kops.spark.programs.inputs import of_columns

if TYPE_CHECKING:
    from kops.spark.programs.models import Run
    from kops.spark.reading.batch_source import Read


class _Worker:
    program: ClassVar[Program | None] = None
    moved: ClassVar[tuple[str, Run] | None] = None
    """The folder of a run on the driver's machine, and that run on this one."""


def program_of(run: Run, read: Read) -> Program:
    """Return the program of a run, started unless the worker has it already; one of another run is ended."""
    if _Worker.program is not None and _Worker.program.start.folder == run.start.folder:
        return _Worker.program
    end_program()
    program = Program(run.start)
    try:
        given = {f"config.{name}": value for name, value in program.settings.items()}
        hello = program.ask(frames.CONFIGURE, frames.encoded_map({**run.settings, **given}))
        refuse_another_application(hello["application"], run.application)
        refuse_another_topology(hello, run.topology, run.application)
        for piece in run.global_pieces:
            for columns in read(piece):
                program.ask(frames.GLOBAL, frames.encoded_batch(of_columns(piece.topic, piece.partition, columns)))
    except BaseException:
        program.close()
        raise
    _Worker.program = program
    return program


def end_program() -> None:
    program, _Worker.program = _Worker.program, None
    if program is not None:
        program.close()


def moved_here(run: Run) -> Run:
    """Return a run as it is on this machine, where Spark has unpacked its program: with a folder of this worker, and the Java that is here.

    :raises MissingRequirement: when there is no Java
    :raises Refused: when it is another than the program was captured with
    """
    if run.packed is None:
        return run
    if _Worker.moved is not None and _Worker.moved[0] == run.start.folder:
        return _Worker.moved[1]
    from pyspark import SparkFiles

    end_program()
    if _Worker.moved is not None:
        shutil.rmtree(_Worker.moved[1].folder, ignore_errors=True)
    try:
        found = unpacked(run.packed, SparkFiles.get(Path(run.packed.archive).name))
    except KopsError as error:
        raise on_host(error, socket.gethostname()) from error
    folder = tempfile.mkdtemp(prefix="program-", dir=Path(SparkFiles.getRootDirectory()).absolute())
    start = replace(
        run.start,
        command=found.command,
        directory=found.directory,
        folder=folder,
        process=os.getpid(),
        jars=found.jars,
        variables=found.environment,
    )
    made = replace(run, start=start, settings={**run.settings, "state.dir": folder}, packed=None)
    _Worker.moved = run.start.folder, made
    return made
