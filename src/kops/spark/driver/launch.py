"""Starts the driver's JVM without Spark's launcher scripts, from an archive of its classes.

``spark-submit`` starts a shell and a JVM to compute the command line of the real one, which then verifies and links some 15,000 classes.
Starting that JVM directly, from a class archive (AppCDS) that an earlier run wrote, takes 2 s; ``spark-submit`` takes 7 s. PySpark attaches
to it by the documented ``PYSPARK_GATEWAY_PORT`` and ``_SECRET``.
"""

from __future__ import annotations

import atexit
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
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from kops.core.errors import MissingRequirement, OperationFailed
from kops.spark.driver.pyspark_internals import CONNECTION_FILE

JVM_START_SECONDS = 600.0
"""Of a machine under load. A JVM that fails to start ends, which is noticed at once."""
_POLL_SECONDS = 0.01
_SETTLED_SECONDS = 5.0
"""A class archive that was not written to for this long is complete: the JVM writes it in one go when it ends."""
_FORGOTTEN_SECONDS = 86_400.0
"""If there is no archive after this long, the JVM that was to write it is assumed to have been killed."""
_CLASSES = "classes.jsa"
_accepting: subprocess.Popen[bytes] | None = None

# org.apache.spark.launcher.JavaModuleOptions of Spark 4: the internals that Spark accesses on Java 17.
_OPENS = (
    *(f"java.base/java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent")),
    *(f"java.base/{name}" for name in ("java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs")),
    *(f"java.base/{name}" for name in ("sun.security.action", "sun.util.calendar")),
    "java.security.jgss/sun.security.krb5",
)
JVM_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENS),
    "-Djdk.reflect.useDirectMethodHandle=false",  # up to 4.1
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",  # from here on those of 4.2; Java 17 ignores what it does not know
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Xlog:disable",
)
FOR_SQL = (
    "-XX:+UseParallelGC",
    # What tasks allocate becomes garbage at once: with Java's own third of the heap, it takes 400 MB more before anything is collected.
    "-XX:NewRatio=7",
    # Ten times Java's own: with those, C2 compiles enough methods while Spark starts to take five seconds of CPU.
    # The rebuild of 100,000 records takes 15.7 s of CPU instead of 19.4, that of 10 million 21.6 instead of 27.8.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
# A JVM that only starts tasks has little to compute: this takes a quarter of its CPU off, 0.5 s.
_FOR_TASKS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class Jvm:
    """A driver's JVM that accepts connections.

    :param process: ends when its standard input closes, so it never outlives kops
    :param leaves: the directory into which it writes its class archive when it ends, if the directory still exists; None: no archive
    """

    process: subprocess.Popen[bytes]
    port: int
    secret: str
    leaves: Path | None = None

    def is_used(self) -> None:
        """Let it write its archive: a JVM that ran nothing, as for a command that was refused, has loaded few of the classes."""
        if self.leaves is not None:
            with contextlib.suppress(OSError):
                self.leaves.mkdir(exist_ok=True)


def launch_jvm(
    java: str,
    settings: Mapping[str, str],
    *,
    jars: Sequence[Path],
    archives: Path | None,
    private: Path | None,
    memory: str,
    environment: Mapping[str, str],
    only_tasks: bool = False,
) -> Jvm:
    """Start the JVM of a Spark driver and wait until PySpark can attach to it.

    Further JVM options come from ``$SPARK_SUBMIT_OPTS``, as with Spark's own launcher.

    :param java: path of the java command
    :param settings: Spark's settings; passed in a file of mode 0600, never on the command line
    :param jars: added to the class path besides PySpark's own
    :param archives: directory for the class archive, and the JVM's working directory: Spark creates a directory ``artifacts`` wherever it
        is started (``ArtifactManager``), which must not be the user's; None: no archive
    :param private: folder for the file of settings while the JVM starts, which may go at any time; None: the system's for temporary files
    :param memory: heap of the JVM in Java's notation, such as ``2g``
    :param environment: added to that of the JVM, and so to that of Python workers on this machine
    :param only_tasks: whether it runs no DataFrames; it has an archive of its own then, of fewer classes
    :raises MissingRequirement: when there is no Java
    :raises OperationFailed: when the JVM ends before it accepts connections
    """
    home = spark_home()
    class_path = [os.environ.get("SPARK_CONF_DIR") or str(home / "conf"), *map(str, sorted((home / "jars").glob("*.jar"))), *map(str, jars)]
    class_path += [os.environ[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if os.environ.get(name)]
    class_path = [str(Path(entry).absolute()) for entry in class_path]
    folder = Path(tempfile.mkdtemp(prefix="kops-spark-"))
    properties = (private or folder) / f"{folder.name}.properties"
    try:
        properties.touch(mode=0o600)
        properties.write_text("".join(f"{key} {_escaped(value)}\n" for key, value in settings.items()), encoding="utf-8")
        options = [f"-Xmx{memory}", *JVM_OPTIONS, *(_FOR_TASKS if only_tasks else FOR_SQL)]
        options.append(f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}")
        options += shlex.split(os.environ.get("SPARK_SUBMIT_OPTS", ""))
        archive, leaves = _archive_options(archives, java, class_path, *(["tasks"] if only_tasks else []))
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
        return replace(_start(command, folder, home, archives, environment), leaves=leaves)
    finally:
        properties.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def how_jvm_ended(patience: float = 0) -> str | None:
    """Return how the JVM that PySpark attached to has ended, such as ``was ended by SIGKILL``; None: it runs, or there is none.

    :param patience: seconds that it may take to end: its connections are closed before
    """
    if _accepting is None:
        return None
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = _accepting.wait(patience)
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return None


def spark_home() -> Path:
    """Return Spark's folder, without importing PySpark: that takes 0.1 s, in which the JVM can start."""
    spec = find_spec("pyspark")
    return Path(os.environ.get("SPARK_HOME") or Path(str(spec and spec.origin)).parent).absolute()


def _start(command: list[str], folder: Path, home: Path, works_in: Path | None, added: Mapping[str, str]) -> Jvm:
    answer, log = folder / "connection", folder / "jvm.log"
    environment = dict(os.environ, **added, SPARK_HOME=str(home), SPARK_SCALA_VERSION="2.13", SPARK_ENV_LOADED="1", SPARK_CONNECT_MODE="0")
    environment[CONNECTION_FILE] = str(answer)
    environment["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys(entry or str(Path.cwd()) for entry in sys.path)
    )  # tasks can import whatever kops can
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
    abandon = partial(_abandon, process, folder)
    atexit.register(abandon)
    try:
        import pyspark  # noqa: F401 - while the JVM starts

        deadline = time.monotonic() + JVM_START_SECONDS
        while not answer.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                last = log.read_text(errors="replace").strip().splitlines()[-3:] or ["it said nothing"]
                raise OperationFailed(f"Spark's JVM did not start: {' '.join(last)}", hint="try `kops doctor`")
            time.sleep(_POLL_SECONDS)
    finally:
        atexit.unregister(abandon)
    global _accepting  # noqa: PLW0603 - one JVM a process, as Spark has one session
    _accepting = process
    data = answer.read_bytes()  # PythonGatewayServer renames it into place once it is complete
    port, length = struct.unpack(">ii", data[:8])
    return Jvm(process, port, data[8 : 8 + length].decode())


def _abandon(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Leave nothing of a JVM that is still starting when kops ends: the thread that waits for it ends where it is."""
    process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _escaped(value: str) -> str:
    """Escape a value for java.util.Properties."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _archive_options(folder: Path | None, java: str, class_path: Sequence[str], *kind: str) -> tuple[list[str], Path | None]:
    """Use the class archive for exactly this class path and Java, or have this run write one when it ends; see ``Jvm.is_used``.

    The JVM checks an archive against the class path and its own version, and continues without it if they differ.

    :returns: options, and the directory that the archive is written to
    """
    if folder is None:
        return [], None
    facts = "\n".join([os.path.realpath(java), *class_path, *kind])
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
    """Adopt the archives of earlier runs, once they are complete; delete what is left of runs that were killed before they wrote one."""
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
