"""How an application's own program is started for a run: by Spark's Python workers, or ahead of them, while Spark starts."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kops.core.errors import Refused
from kops.core.streams.capture import Capture
from kops.core.streams.surroundings import Difference
from kops.gateways.machine.agent import shell_environment
from kops.gateways.machine.jdk import parse_version
from kops.gateways.machine.program import OTHER_SURROUNDINGS, ProgramStart, keep_environment, launched
from kops.gateways.machine.program_ahead import ProgramPool
from kops.gateways.machine.program_registries import Registries, with_contents
from kops.gateways.machine.program_travel import pack
from kops.operations.engine.spark import Engine, chosen_master, is_local, spark_folder, start_engine
from kops.operations.services import Services
from kops.operations.state.from_snapshot import BaseSnapshot
from kops.operations.state.own_code.memory import Memory
from kops.operations.state.own_code.stores import launch_settings

if TYPE_CHECKING:
    from kops.spark.programs.jobs import Jobs
    from kops.spark.programs.models import Run
    from kops.spark.reading.batch_source import BatchSource

_CONSTRUCTION_SECONDS = 120.0
"""How long a program may take to construct KafkaStreams."""


@dataclass(frozen=True)
class ProgramRun:
    """A captured program that is to compute its stores.

    :param base: a snapshot that the tasks start from, so that they read what came since; None: they start from nothing
    :param alone: words before the command with which it has no network; none: it has that of this machine
    :param nothing_waits: unprocessed records of its repartition topics count as processed, since the application will not process them for
        these stores
    :param as_records: what is staged of versioned stores are the records to write, and not their versions
    :param folder: of the run, where it was started ahead
    :param memory: what its tasks may take; None: it is not looked at yet
    :param registries: that it asks through kops
    :param all_disturbed: all of the input is given to it once more, disturbed, and no sample
    :param differences: between the surroundings of its capture and those here
    """

    capture: Capture
    base: BaseSnapshot | None = None
    alone: tuple[str, ...] = ()
    nothing_waits: bool = False
    as_records: bool = False
    folder: str | None = None
    memory: Memory | None = None
    registries: Registries = field(default_factory=Registries)
    all_disturbed: bool = False
    differences: tuple[Difference, ...] = ()

    @property
    def directory(self) -> str:
        """Where its command is run: as when it was captured, if that folder is still there."""
        folder = self.capture.folder
        return folder if folder and Path(folder).is_dir() else str(Path.cwd())

    @property
    def class_path(self) -> tuple[tuple[str, str | None], ...]:
        """Name and digest of each entry of the captured class path."""
        return tuple((Path(entry.path).name, entry.sha256) for entry in self.capture.class_path)


def program_start(program: ProgramRun, folder: str) -> ProgramStart:
    return ProgramStart(
        command=program.capture.command,
        directory=program.directory,
        folder=folder,
        process=os.getpid(),
        class_path=program.class_path,
        class_path_sha256=program.capture.class_path_sha256,
        seconds=_CONSTRUCTION_SECONDS,
        properties=launch_settings(program.capture),
        alone=program.alone,
        heap=program.memory.heap if program.memory else 0,
        registries=program.registries,
        options=program.capture.surroundings.flags,
    )


@contextmanager
def folder_for(engine: Engine, program: ProgramRun) -> Iterator[str]:
    """Give the private folder of a run; with it its programs end."""
    if program.folder is not None:
        yield program.folder
        return
    folder = tempfile.mkdtemp(prefix="program-", dir=spark_folder(engine.services))
    try:
        keep_environment(folder, shell_environment())
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def engine_for(services: Services, program: ProgramRun, master: str | None) -> Engine:
    """Begin to start Spark, where it can run a program.

    :raises Refused: where it cannot
    """
    chosen = chosen_master(services, master)
    if not is_local(chosen):
        hint = "leave out --master and --remote: it then runs on this machine"
        if program.alone:
            raise Refused(f"--no-network is only for a program that runs on this machine, and Spark is at {chosen}", hint=hint)
    return start_engine(services, master)


@contextmanager
def jobs_of(engine: Engine, program: ProgramRun, batches: BatchSource, run: Run) -> Iterator[Jobs]:
    """Give what runs a program's tasks; where they run on other machines, Spark takes the program there."""
    from kops.spark.programs.cluster_jobs import ClusterJobs
    from kops.spark.programs.jobs import Jobs

    if engine.is_local:
        jobs = Jobs(batches, run)
    else:
        capture, archive = program.capture, Path(run.folder, f"{run.folder.name}.zip")
        paths, version = [entry.path for entry in capture.class_path], capture.java_version
        java = parse_version(f'version "{version}"') if version else None
        packed = pack(capture.command, program.directory, paths, archive, java=java, environment=shell_environment())
        engine.session.addArtifacts(packed.archive, archive=True)
        start = replace(run.start, registries=with_contents(run.start.registries))
        jobs = ClusterJobs(batches, replace(run, start=start, packed=packed))
    try:
        yield jobs
    finally:
        jobs.close()


@contextmanager
def started_ahead(engine: Engine, program: ProgramRun) -> Iterator[ProgramRun]:
    """Start a program as often as Spark will have tasks of it at a time: its JVMs take as long as Spark, which starts meanwhile."""
    count = program.memory.jvms if program.memory is not None else 0
    if program.alone or not count:
        yield program
        return
    with folder_for(engine, program) as folder:
        start = program_start(program, folder)
        other, environment = replace(start, surroundings=OTHER_SURROUNDINGS), shell_environment()
        ahead = [
            ProgramPool(folder, count, lambda own, more: launched(start, environment, own, more)),
            ProgramPool(folder, count, lambda own, more: launched(other, environment, own, more), disturbed=True),
        ]
        try:
            yield replace(program, folder=folder)
        finally:
            for pool in ahead:
                pool.close()
