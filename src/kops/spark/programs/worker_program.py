"""The programs of a Python worker: a JVM takes longer to start than a task to run, so each worker keeps some between tasks."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from kops.core.errors import KopsError
from kops.formats import runner_frames as frames
from kops.gateways.machine.program import CLOCK, SHIFT_MS, CannotBeginAfresh, Program, refuse_another_application, refuse_another_topology
from kops.gateways.machine.program_registries import with_files
from kops.gateways.machine.program_travel import on_host, unpacked
from kops.spark.programs.inputs import columns_batch

SLOW_SECONDS = 1.0
"""A program that takes longer to begin afresh does so as seldom as can be."""

if TYPE_CHECKING:
    from kops.spark.programs.models import Run
    from kops.spark.reading.batch_source import Read


class _Worker:
    """The programs by their surroundings, those that have run a task, and whether they stay as that left them.

    :param moved: the folder of a run on the driver's machine, and that run on this one
    """

    programs: ClassVar[dict[tuple[str, ...], Program]] = {}
    used: ClassVar[set[tuple[str, ...]]] = set()
    stays: ClassVar[bool] = False
    moved: ClassVar[tuple[str, Run] | None] = None


def program_of(run: Run, read: Read, surroundings: tuple[str, ...] = ()) -> Program:
    """Return the program of a run, begun afresh: what it keeps in fields is not that of another task.

    One that cannot begin afresh, or takes long, stays as the last task left it: if it keeps something, that differs from what it is when it
    is disturbed. Those of another run are ended.
    """
    if any(each.start.folder != run.start.folder for each in _Worker.programs.values()):
        end_programs()
    program = _Worker.programs.get(surroundings)
    if program is not None and surroundings in _Worker.used and not _Worker.stays:
        began = time.monotonic()
        try:
            program.ask(frames.RESTART)
        except CannotBeginAfresh:
            _Worker.stays = True
        else:
            _Worker.stays = time.monotonic() - began > SLOW_SECONDS
    if program is None:
        program = _Worker.programs[surroundings] = _started(run, read, surroundings)
    _Worker.used.add(surroundings)
    return program


def _started(run: Run, read: Read, surroundings: tuple[str, ...]) -> Program:
    program = Program(replace(run.start, surroundings=surroundings))
    try:
        given = {f"config.{name}": value for name, value in program.settings.items()}
        if CLOCK in surroundings:
            given["wall_clock"] = str(int(run.settings["wall_clock"]) + SHIFT_MS)
        hello = program.ask(frames.CONFIGURE, frames.encoded_map({**run.settings, **given}))
        refuse_another_application(hello["application"], run.application)
        refuse_another_topology(hello, run.topology, run.application)
        for each in run.global_inputs:
            for columns in read(each):
                program.ask(frames.GLOBAL, frames.encoded_batch(columns_batch(each.topic, each.partition, columns)))
    except BaseException:
        program.close()
        raise
    return program


def end_program(surroundings: tuple[str, ...]) -> None:
    program = _Worker.programs.pop(surroundings, None)
    _Worker.used.discard(surroundings)
    if program is not None:
        program.close()


def end_programs() -> None:
    _Worker.stays = False
    for surroundings in list(_Worker.programs):
        end_program(surroundings)


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

    end_programs()
    if _Worker.moved is not None:
        shutil.rmtree(_Worker.moved[1].folder, ignore_errors=True)
    place = os.path.realpath(SparkFiles.get(Path(run.packed.archive).name))  # as the JVM knows the folder that it is started in
    try:
        found = unpacked(run.packed, place)
    except KopsError as error:
        raise on_host(error, socket.gethostname(), run.packed.java) from error
    folder = tempfile.mkdtemp(prefix="program-", dir=Path(SparkFiles.getRootDirectory()).absolute())
    start = replace(
        run.start,
        command=found.command,
        directory=found.directory,
        folder=folder,
        process=os.getpid(),
        jars=found.jars,
        variables=found.environment,
        registries=with_files(run.start.registries, Path(folder)),
        place=place,
    )
    made = replace(run, start=start, settings={**run.settings, "state.dir": folder}, packed=None)
    _Worker.moved = run.start.folder, made
    return made
