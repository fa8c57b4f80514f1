"""The Spark session of this process: only one, created on first use, its JVM started in the background.

Work without DataFrames gets by with a Spark context. On two cores it is there after 1.2 s, a session after 1.9 s, and with a job without
records the JVM takes 1.4 instead of 2.8 s of CPU.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kops.core.errors import KopsError, OperationFailed
from kops.spark.driver.pyspark_internals import ONLY_TASKS, jvm

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from kops.spark.driver.launch import Jvm

DEFAULT_MASTER = "local[*]"
DEFAULT_MEMORY = "2g"
MEMORY = "spark.driver.memory"
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""The loggers through which PySpark writes every error in an expression to stderr as JSON, besides raising it."""


@dataclass(frozen=True)
class SparkNeeds:
    """What a session is created from.

    :param master: ``local[*]``, ``spark://...``, ``yarn``, ``k8s://...``, or ``sc://...`` for Spark Connect
    :param jars: those of Spark's Kafka source
    :param java: path of the java command
    :param archives: folder for the JVM's class archive; None: without
    :param private: folder for the JVM's settings while it starts; None: the system's for temporary files
    :param environment: added to that of the driver's JVM, and so to that of Python workers on this machine
    :param conf: further Spark settings, which take precedence
    :param sql: whether there will be DataFrames; otherwise only tasks that read and write by themselves
    """

    jars: Sequence[Path]
    java: str = "java"
    master: str = DEFAULT_MASTER
    archives: Path | None = None
    private: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    sql: bool = True

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    @property
    def is_remote(self) -> bool:
        return self.master.startswith("sc://")

    @property
    def only_tasks(self) -> bool:
        """Whether a context is enough; elsewhere the session sends kops to the workers."""
        return self.is_local and not self.sql


def settings_of(needs: SparkNeeds) -> dict[str, str]:
    """Return Spark's settings.

    Java's arithmetic wraps around, so ANSI mode is off; a task must not run twice at a time, so speculation is off.
    """
    settings = {
        "spark.app.name": "kops",
        "spark.master": needs.master,
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.sql.shuffle.partitions": "200",
        "spark.sql.execution.replaceHashWithSortAgg": "true",
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",  # not kafka: version 1 turns every row into objects and back
        "spark.speculation": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.heartbeatInterval": "2s",
        "spark.log.structuredLogging.enabled": "false",
    }
    if needs.is_local:
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
            "spark.python.daemon.module": "kops.spark.python_daemon",
        }
    else:
        settings["spark.jars"] = ",".join(map(str, needs.jars))
        # Otherwise a cached DataFrame has as many partitions as a shuffle, each with a task and a Python worker, however small it is.
        settings["spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"] = "true"
    return {**settings, **needs.conf, "spark.speculation": "false", "spark.sql.ansi.enabled": "false"}


class StartingSession:
    def __init__(self, needs: SparkNeeds) -> None:
        self._needs = needs
        self._settings = settings_of(needs)
        self._failure: BaseException | None = None
        self._started: SparkSession | SparkContext | None = None
        self._jvm: Jvm | None = None
        self._thread = threading.Thread(target=self._start, name="kops-spark", daemon=True)
        self._thread.start()

    @property
    def is_starting(self) -> bool:
        return self._thread.is_alive()

    def get(self) -> SparkSession:
        """Wait for the session.

        :raises OperationFailed: when it cannot be created, with Spark's reason
        """
        started = self._wait()
        if not hasattr(started, "parallelize"):
            return started
        self._started = session = self._session()
        return session

    def tasks(self) -> SparkContext | SparkSession:
        """Wait for what runs tasks: the context, or with Spark Connect, which has none, the session.

        :raises OperationFailed: as ``get``
        """
        started = self._wait()
        return getattr(started, "sparkContext", started)

    def _wait(self) -> SparkSession | SparkContext:
        self._thread.join()
        if self._jvm is not None:
            self._jvm.is_used()
        if isinstance(self._failure, KopsError):
            raise self._failure
        if self._started is None:
            reason = str(self._failure).strip().splitlines()
            raise OperationFailed(
                f"Spark did not start at {self._needs.master}: {reason[0] if reason else repr(self._failure)}",
                hint="see whether the master answers, and try `kops doctor`",
            ) from self._failure
        return self._started

    def _start(self) -> None:
        try:
            self._started = self._make()
        except BaseException as failure:  # raised in the thread that waits
            self._failure = failure

    def _make(self) -> SparkSession | SparkContext:
        for name in _LOGGERS:
            logging.getLogger(name).disabled = True
        if self._needs.is_remote:
            from kops.spark.driver.remote import connect, ship_kops

            session = connect(self._needs.master, self._settings)
            ship_kops(session)
            return session
        from kops.spark.driver.launch import launch_jvm

        os.environ.setdefault("PYSPARK_PYTHON", self._settings.get("spark.pyspark.python", sys.executable))
        os.environ["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1" if self._needs.is_local else "")
        if not os.environ["SPARK_LOCAL_IP"]:
            del os.environ["SPARK_LOCAL_IP"]
        memory, needs = self._settings.get(MEMORY, DEFAULT_MEMORY), self._needs
        self._jvm = launched = launch_jvm(
            needs.java,
            self._settings,
            jars=needs.jars,
            archives=needs.archives,
            private=needs.private,
            memory=memory,
            environment={**needs.environment, **({ONLY_TASKS: "1"} if needs.only_tasks else {})},
            only_tasks=needs.only_tasks,
        )
        os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(launched.port), launched.secret
        try:
            return self._attach()
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]

    def _attach(self) -> SparkSession | SparkContext:
        if self._needs.only_tasks:
            from pyspark import SparkConf, SparkContext

            return SparkContext(conf=SparkConf().setAll(list(self._settings.items())))
        return self._session()

    def _session(self) -> SparkSession:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        for key, value in self._settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        if not self._needs.is_local:
            from kops.spark.driver.remote import ship_kops

            ship_kops(session)
        return session


_current: StartingSession | None = None


def set_system_properties(session: SparkSession, properties: Mapping[str, str]) -> None:
    """Set system properties of the running driver JVM; allowed addresses are added to those already set."""
    for key, value in properties.items():
        system = jvm(session).java.lang.System
        values = [one for one in (system.getProperty(key) or "").split(",") if one]
        system.setProperty(key, ",".join(dict.fromkeys([*values, value])))


def start_session(needs: SparkNeeds) -> StartingSession:
    global _current  # noqa: PLW0603 - one session a process is Spark's own rule
    if _current is None:
        _current = StartingSession(needs)
    return _current
