"""The program of a Python worker: a JVM takes longer to start than a task to run, so each worker keeps one between tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kops.formats import runner_frames as frames
from kops.gateways.machine.program import Program, refuse_another_application, refuse_another_topology
from kops.spark.programs.inputs import of_columns

if TYPE_CHECKING:
    from kops.spark.programs.models import Run
    from kops.spark.reading.batch_source import Read


class _Worker:
    program: ClassVar[Program | None] = None


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
