"""An archive of the classes of Kafka's JVMs (AppCDS), of which a run starts hundreds: with it each needs half the time to start.

Made once for a cache: a broker leaves it behind when it ends. Where there is none, the JVMs start without.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from kops.config.paths import directories
from kops.core.errors import MissingRequirement
from kops.gateways.machine.jars import KAFKA_VERSION, class_path, jars_of, kafka_set
from kops.gateways.machine.jdk import require_jdk
from support.patience import HANG_SECONDS


def options(path: str | None = None) -> list[str]:
    """Return the options with which a JVM takes classes from the archive.

    :param path: its class path; none are returned unless it begins with the jars of the archive. None: that of a broker
    """
    try:
        jars = jars_of(kafka_set(), directories(os.environ).cache, fetch=False)
    except MissingRequirement:
        return []
    begins = class_path(jars)
    archive = _archive(jars)
    fits = path is None or path == begins or path.startswith(begins + os.pathsep)
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:disable"] if fits and archive.exists() else []


def make() -> None:
    """Make the archive of Apache Kafka's classes, unless it is there; kops makes that of Spark's, as whenever it first runs Spark."""
    from support.isolation import FOR_SHORT_RUNS

    jars = jars_of(kafka_set(), directories(os.environ).cache)
    archive = _archive(jars)
    if archive.exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(folder) / archive.name
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KAFKA_JVM_PERFORMANCE_OPTS", shlex.join([*FOR_SHORT_RUNS.split(), f"-XX:ArchiveClassesAtExit={made}"]))
            _run_a_broker(Path(folder), jars)
        made.rename(archive)
    _wait_for_sparks(directories(os.environ).cache / "spark")


def _wait_for_sparks(folder: Path) -> None:
    """Wait until the JVM of Spark has begun to write its archive: kops takes it when it is 5 s old, before a lane comes to start Spark."""
    deadline = time.monotonic() + HANG_SECONDS
    while time.monotonic() < deadline:
        begun = [leaves for leaves in folder.glob("*.jsa.*") if leaves.is_dir() and not any(leaves.iterdir())]
        if not begun:
            return
        time.sleep(0.1)


def _archive(jars: Sequence[Path]) -> Path:
    facts = "\n".join([os.path.realpath(require_jdk().java), *map(str, jars)])
    return directories(os.environ).cache / "tests" / f"classes-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.jsa"


def _run_a_broker(folder: Path, jars: Sequence[Path]) -> None:
    """Start a broker, let kops verify a state on it, and stop it."""
    from kops.sandbox import cluster
    from support.programs import Program, Record
    from support.streams_apps import Cluster

    sandbox = cluster.make(folder / "kafka", name="classes", kafka_version=KAFKA_VERSION)
    try:
        cluster.up(sandbox, cluster.Programs(require_jdk(), jars))
        program, kafka = Program("count", "long", value="string").named("classes"), Cluster(sandbox.bootstrap_servers)
        kafka.create_all({program.topic: 1, program.changelog: 1})
        kafka.produce(program.topic, [Record(b"k", b"v", 1_000_000)])
        kafka.commit(program.application, {(program.topic, 0): 1})
        (folder / "state.yaml").write_text(json.dumps(program.state_file()))
        verify = [sys.executable, "-m", "kops", "state", "verify", folder / "state.yaml", "-B", sandbox.bootstrap_servers]
        subprocess.run(
            verify, env=_environment(folder), check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=HANG_SECONDS
        )
    finally:
        cluster.down(sandbox, delete=True)


def _environment(folder: Path) -> dict[str, str]:
    """Return variables under which nothing of the person is read or written, except for the cache."""
    from support.isolation import JVMS

    others = {name: value for name, value in os.environ.items() if not name.startswith("KOPS_")}
    homes = {f"XDG_{kind}_HOME": str(folder / kind) for kind in ("CONFIG", "STATE", "DATA")}
    return {**others, **homes, "SPARK_SUBMIT_OPTS": JVMS["SPARK_SUBMIT_OPTS"], "KOPS_CACHE_DIR": str(directories(os.environ).cache)}
