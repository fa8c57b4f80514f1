"""Starts the driver's JVM without Spark's launcher scripts, and with an archive of its classes.

``spark-submit`` starts a shell and a JVM to compute the command line of the real one, and that one then verifies and
links some 15,000 classes. Starting it directly, from a class archive (AppCDS) that its first run left behind, takes 2 s
where ``spark-submit`` takes 7 s. PySpark attaches to it by the documented ``PYSPARK_GATEWAY_PORT`` and ``_SECRET``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kops.core.errors import MissingRequirement, OperationFailed
from kops.spark.driver.pyspark_internals import CONNECTION_FILE

JVM_START_SECONDS = 60.0
_POLL_SECONDS = 0.01
_SETTLED_SECONDS = 5.0
"""A class archive that was not written to for so long is whole: the JVM writes it in one go when it ends."""
_FORGOTTEN_SECONDS = 86_400.0
"""After so long without an archive, the JVM that was to write one is taken for killed."""
_CLASSES = "classes.jsa"

# org.apache.spark.launcher.JavaModuleOptions of Spark 4: what Spark reaches into on Java 17.
_OPENS = (
    *(f"java.base/java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent")),
    *(f"java.base/{name}" for name in ("java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs")),
    *(f"java.base/{name}" for name in ("sun.security.action", "sun.util.calendar")),
    "java.security.jgss/sun.security.krb5",
)
JVM_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENS),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Xlog:disable",
    "-XX:+UseParallelGC",
    # What tasks make is garbage at once: with Java's third of the heap, 400 MB more of it are taken before anything is collected.
    "-XX:NewRatio=7",
    # Ten times Java's own: while Spark starts, so many of its methods reach those that C2 took five seconds of CPU to compile them.
    # The rebuild of 100,000 records takes 15.7 s of CPU with them in place of 19.4, that of 10 million 21.6 in place of 27.8.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


@dataclass(frozen=True)
class Jvm:
    """A driver's JVM that answers.

    :param process: ends when its standard input closes, so it never outlives kops
    :param leaves: the folder in which it archives its classes when it ends, if the folder is there; None: it does not
    """

    process: subprocess.Popen[bytes]
    port: int
    secret: str
    leaves: Path | None = None

    def is_used(self) -> None:
        """Let it leave its archive behind: a JVM that was asked for nothing, as by a command that was refused, has few of the classes."""
        if self.leaves is not None:
            with contextlib.suppress(OSError):
                self.leaves.mkdir(exist_ok=True)


def launch_jvm(
    java: str, settings: Mapping[str, str], *, jars: Sequence[Path], archives: Path | None, memory: str, log: Path | None = None
) -> Jvm:
    """Start the JVM of a Spark driver and wait until PySpark can attach to it.

    More options for it are taken from ``$SPARK_SUBMIT_OPTS``, as Spark's own launcher does.

    :param java: path of the java command
    :param settings: Spark's settings; handed over in a file of mode 0600, never on the command line
    :param jars: put on the class path beside PySpark's own
    :param archives: folder for the class archive, where the JVM works too: Spark makes a folder ``artifacts`` wherever it is started
        (``ArtifactManager``), and that is not to be a person's; None: without
    :param memory: heap of the JVM in Java's notation, such as ``2g``
    :param log: takes the JVM's stdout and stderr; a temporary file when None
    :raises MissingRequirement: when there is no Java
    :raises OperationFailed: when the JVM ends before it answers
    """
    home = spark_home()
    class_path = [os.environ.get("SPARK_CONF_DIR") or str(home / "conf"), *map(str, sorted((home / "jars").glob("*.jar"))), *map(str, jars)]
    class_path += [os.environ[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if os.environ.get(name)]
    class_path = [str(Path(entry).absolute()) for entry in class_path]
    folder = Path(tempfile.mkdtemp(prefix="kops-spark-"))
    try:
        properties = folder / "spark.properties"
        properties.touch(mode=0o600)
        properties.write_text("".join(f"{key} {_escaped(value)}\n" for key, value in settings.items()), encoding="utf-8")
        options = [f"-Xmx{memory}", *JVM_OPTIONS, f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"]
        options += shlex.split(os.environ.get("SPARK_SUBMIT_OPTS", ""))
        archive, leaves = _archive_options(archives, java, class_path)
        options += archive
        command = [
            str(Path(java).absolute()) if os.sep in java else java,
            "-cp",
            os.pathsep.join(class_path),
            *options,
            "org.apache.spark.deploy.SparkSubmit",
        ]
        command += ["--load-spark-defaults", "--properties-file", str(properties), "pyspark-shell"]
        if archives is not None:
            archives.mkdir(parents=True, exist_ok=True)
        return replace(_start(command, folder, home, log or folder / "jvm.log", archives), leaves=leaves)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def spark_home() -> Path:
    """Return the folder of the installed PySpark, or ``$SPARK_HOME``."""
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent).absolute()


def _start(command: list[str], folder: Path, home: Path, log: Path, works_in: Path | None) -> Jvm:
    answer = folder / "connection"
    environment = dict(os.environ, SPARK_HOME=str(home), SPARK_SCALA_VERSION="2.13", SPARK_ENV_LOADED="1", SPARK_CONNECT_MODE="0")
    environment[CONNECTION_FILE] = str(answer)
    environment["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys(entry or str(Path.cwd()) for entry in sys.path)
    )  # what kops can import, tasks can
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=works_in,
                preexec_fn=_ignore_interrupt,  # noqa: PLW1509 - as PySpark does: Ctrl-C is kops' to handle
            )
        except FileNotFoundError as missing:
            raise MissingRequirement(f"cannot start Java: {missing}", hint="install a JDK, 17 or newer, or set JAVA_HOME") from missing
    deadline = time.monotonic() + JVM_START_SECONDS
    while not answer.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            last = log.read_text(errors="replace").strip().splitlines()[-3:] or ["it said nothing"]
            raise OperationFailed(f"Spark's JVM did not start: {' '.join(last)}", hint="try `kops doctor`")
        time.sleep(_POLL_SECONDS)
    data = answer.read_bytes()  # PythonGatewayServer renames it into place when it is whole
    port, length = struct.unpack(">ii", data[:8])
    return Jvm(process, port, data[8 : 8 + length].decode())


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _escaped(value: str) -> str:
    """Return a value as java.util.Properties reads it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _archive_options(folder: Path | None, java: str, class_path: Sequence[str]) -> tuple[list[str], Path | None]:
    """Use the class archive of this very class path and Java, or have this run leave one behind when it ends; see ``Jvm.is_used``.

    The JVM checks an archive against the class path and its own version, and goes on without when they differ.

    :returns: options, and the folder that the archive is written to
    """
    if folder is None:
        return [], None
    facts = "\n".join([os.path.realpath(java), *class_path])
    archive = folder / f"spark-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.jsa"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _adopt(folder, archive)
        if archive.exists():
            return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"], None
        if any(folder.glob(f"{archive.name}.*")):
            return [], None
    except OSError:
        return [], None
    leaves = folder / f"{archive.name}.{os.getpid()}"
    return [f"-XX:ArchiveClassesAtExit={leaves / _CLASSES}"], leaves


def _adopt(folder: Path, archive: Path) -> None:
    """Take over what an earlier run left behind, once nobody writes it any more; forget those that were killed before they wrote."""
    for leaves in folder.glob(f"{archive.name}.*"):
        part = leaves / _CLASSES if leaves.is_dir() else leaves
        with contextlib.suppress(FileNotFoundError):
            if part.exists():
                if time.time() - part.stat().st_mtime < _SETTLED_SECONDS:
                    continue
                part.replace(archive)
            elif time.time() - leaves.stat().st_mtime < _FORGOTTEN_SECONDS:
                continue
            shutil.rmtree(leaves, ignore_errors=True)
