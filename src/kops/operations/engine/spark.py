"""Spark for a connection: started while the cluster is queried, with progress while it works."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kops.config.connection import Connection
from kops.core.errors import ConfigError, MissingRequirement, OperationFailed, Refused
from kops.core.extras import STATE, needs
from kops.core.models import TopicPartition
from kops.gateways.machine.private_files import keep_renewed, run_folder
from kops.gateways.machine.worker_locks import VARIABLE, make_lock
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.driver.session import StartingSession
    from kops.spark.reading.archive import ArchivedTopic
    from kops.spark.reading.batch_source import BatchSource
    from kops.spark.reading.input_seen import InputSeen
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.source import KafkaSource
    from kops.spark.types import SparkContext, SparkSession

STAGES_KEPT_DAYS = 30
_EXECUTOR_OPTIONS = "spark.executor.extraJavaOptions"


def spark_folder(services: Services) -> Path:
    """Return this process's private folder for Spark; it is deleted with the process, or by the next one if that is killed."""
    return run_folder(services.directories.state / "spark")


def report_folder(services: Services) -> str:
    """Return a new folder in which tasks on this machine report."""
    return tempfile.mkdtemp(prefix="read-", dir=spark_folder(services))


def is_local(master: str) -> bool:
    """Whether Spark runs on this machine."""
    return master.startswith("local")


@dataclass
class Engine:
    """A Spark session that is starting, and what jobs need from the connection.

    :param master: Spark's master
    :param archives: what is read from archives, by topic
    """

    services: Services
    master: str
    _starting: StartingSession = field(repr=False)
    archives: dict[str, ArchivedTopic] = field(default_factory=dict)
    _scanned: dict[tuple[str, int, int, int], InputSeen] = field(default_factory=dict, repr=False)

    @cached_property
    def _reports(self) -> str:
        return report_folder(self.services)

    @property
    def session(self) -> SparkSession:
        """The session; waits until it has started."""
        if self._starting.is_starting:
            self.services.progress.step("starting Spark")
        return self._starting.get()

    @property
    def is_local(self) -> bool:
        """Whether all tasks run on this machine."""
        return is_local(self.master)

    @property
    def tasks(self) -> SparkContext | SparkSession:
        """What runs tasks without DataFrames; waits until it has started."""
        if self._starting.is_starting:
            self.services.progress.step("starting Spark")
        return self._starting.tasks()

    def cancel_jobs(self) -> None:
        """Cancel all running jobs of the session, where it supports that."""
        with contextlib.suppress(Exception):
            if self.master.startswith("sc://"):
                self.session.interruptAll()
            else:
                self.session.sparkContext.cancelAllJobs()

    def kafka(self) -> KafkaSource:
        """Return the source for this connection; its settings are self-contained when tasks run elsewhere."""
        from kops.config.java import java_settings, java_system_properties
        from kops.spark.driver.session import set_system_properties
        from kops.spark.reading.source import KafkaSource

        directory = spark_folder(self.services) if self.is_local else None
        settings = java_settings(self.services.connection, directory)
        if directory is not None:
            _keep_token(self.services.connection, directory)
        if not self.master.startswith("sc://"):
            set_system_properties(self.session, java_system_properties(settings))
        return KafkaSource(self.session, settings, self._batches(), self.archives)

    def require_batches(self, what: str) -> BatchSource:
        """Return what reads whole record batches.

        :param what: the work that needs it, as the subject and verb of a sentence
        :raises Refused: where there is none
        """
        from kops.config.librdkafka import librdkafka_settings, without_files
        from kops.gateways.wire.connections import not_honoured
        from kops.spark.reading.batch_source import BatchSource

        settings = librdkafka_settings(self.services.connection)
        names = not_honoured(settings)
        if "oauth_cb" in settings and not self.is_local:
            names.append("oauth_token_command on other machines")
        if names:
            raise Refused(f"{what} only over a connection that kops itself opens, which does not support {', '.join(names)}")
        return BatchSource(self.session, settings if self.is_local else without_files(settings), self._reports)

    def in_kafka(self, wanted: TopicRange) -> TopicRange:
        """Return the part of a range that is not read from an archive."""
        return self.archives[wanted.topic].divided(wanted)[1] if wanted.topic in self.archives else wanted

    def seen(self, topic: str, partition: int, start: int, end: int) -> InputSeen | None:
        """Return what tasks recorded about a range that they read as whole batches, or a scan of it; None where nothing did."""
        from kops.spark.reading.input_seen import seen_of

        return seen_of(self._reports, topic, partition, start, end) or self._scanned.get((topic, partition, start, end))

    def scan(self, topic: str, ranges: Mapping[int, tuple[int, int]]) -> None:
        """Look for gaps in what no task has read as whole batches, if this machine can do it."""
        from kops.spark.reading.input_seen import scan

        batches = self._batches()
        unseen = {number: ends for number, ends in ranges.items() if ends[0] < ends[1] and not self.seen(topic, number, *ends)}
        if batches is None or not unseen:
            return
        with contextlib.suppress(Exception):  # another witness must not break the work
            for number, found in scan(batches.settings, topic, unseen).items():
                begin, end = unseen[number]
                self._scanned[topic, number, begin, end] = found

    def _batches(self) -> BatchSource | None:
        """Return what reads whole record batches: on this machine, over a connection that its tasks can open."""
        from kops.config.librdkafka import librdkafka_settings
        from kops.gateways.wire.connections import can_connect
        from kops.spark.reading.batch_source import BatchSource

        settings = librdkafka_settings(self.services.connection)
        return BatchSource(self.session, settings, self._reports) if self.is_local and can_connect(settings) else None

    def reading(self, *ranges: TopicRange) -> AbstractContextManager[None]:
        """Show how many records were read, while something reads them."""
        from kops.spark.driver.watch import records_read, records_reported, watching

        total = sum(wanted.records for wanted in ranges)
        by_spark, reported_before = records_read(self.session), records_reported(self._reports)
        return watching(self.services.progress, lambda: by_spark() + records_reported(self._reports) - reported_before, total, "records")


def _keep_token(connection: Connection, directory: Path) -> None:
    from kops.config.java import token_file, write_token
    from kops.config.oauth import expiry

    file = token_file(connection, directory)
    if file is not None:
        keep_renewed(file, expiry(file.read_text(encoding="utf-8"), time.time()), lambda: write_token(connection, directory))


def write_progress(services: Services, ends: Mapping[TopicPartition, int], total: int) -> AbstractContextManager[None]:
    """Show how many more records partitions have than before, while something writes."""
    from kops.spark.driver.watch import watching

    def written() -> int:
        return sum(bound.log_end_offset - ends[partition] for partition, bound in services.kafka.offsets.bounds(ends).items())

    return watching(services.progress, written, total, "records")


def chosen_master(services: Services, master: str | None) -> str:
    """Return Spark's master: the one given, the context's, or this machine.

    :raises MissingRequirement: without the extra ``state``
    """
    needs(STATE, "computing on records needs")
    from kops.spark.driver.session import DEFAULT_MASTER

    return master or services.connection.spark.master or DEFAULT_MASTER


def start_engine(services: Services, master: str | None = None, *, sql: bool = True) -> Engine:
    """Begin to start Spark.

    :param master: Spark's master, or the address of a Spark Connect server; the context's, or this machine, when None
    :param sql: whether there will be DataFrames, and not only tasks
    :raises UsageProblem: when that address carries a token
    :raises MissingRequirement: without the extra ``state``; when there is no Java, or no jars of Spark's Kafka source
    """
    from kops.gateways.machine.jars import jars_of, spark_kafka_set
    from kops.gateways.machine.jdk import require_jdk
    from kops.spark.driver.remote import check_url
    from kops.spark.driver.session import SparkNeeds, start_session

    spark = services.connection.spark
    chosen = chosen_master(services, master)
    check_url(chosen)
    if not chosen.startswith("local") and not spark.staging_directory:
        raise MissingRequirement(
            f"Spark at {chosen} needs a folder that all its workers reach, for what is about to be written",
            hint="set spark.staging_directory of the context: a shared folder, or a URI such as hdfs:// or s3a://",
        )
    folder = Path(spark.jars_directory) if spark.jars_directory else None
    if chosen.startswith("sc://"):  # the server has Java and jars
        return Engine(services, chosen, start_session(SparkNeeds(jars=(), master=chosen, conf=spark.conf)))
    needs = SparkNeeds(
        jars=jars_of(spark_kafka_set(), services.directories.cache, progress=services.progress, jars_directory=folder),
        java=str(require_jdk().java),
        master=chosen,
        archives=services.directories.cache / "spark",
        private=spark_folder(services),
        environment={VARIABLE: str(make_lock(services.directories.locks))} if chosen.startswith("local") else {},
        conf=spark.conf if chosen.startswith("local") else _with_system_properties(services.connection),
        sql=sql,
    )
    return Engine(services, chosen, start_session(needs))


def _with_system_properties(connection: Connection) -> dict[str, str]:
    """Return a context's Spark settings, with what the executors' JVMs need to log in."""
    from kops.config.java import java_settings, java_system_properties

    options = [f"-D{key}={value}" for key, value in java_system_properties(java_settings(connection)).items()]
    given = connection.spark.conf.get(_EXECUTOR_OPTIONS, "")
    return {**connection.spark.conf, **({_EXECUTOR_OPTIONS: " ".join(filter(None, [given, *options]))} if options else {})}


def new_stage(services: Services, application: str) -> str:
    """Return the location of a new stage: a path, or a URI below the context's staging folder."""
    name = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(services.now().timestamp()))}-{application}-{uuid.uuid4().hex[:6]}"
    shared = services.connection.spark.staging_directory
    if shared:
        return f"{(shared if '://' in shared else str(Path(shared).absolute())).rstrip('/')}/kops-stages/{name}"
    folder = services.directories.state / "stages"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _forget_old(services, folder)
    return str(folder / name)


def drop_stage(*paths: str) -> None:
    """Delete stages on this machine; those elsewhere are left to the owners of that storage."""
    for path in paths:
        if "://" not in path:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def dropped_on_failure(engine: Engine, stages: Collection[str]) -> Iterator[None]:
    """End the jobs and delete the stages of work that fails, or is stopped."""
    try:
        yield
    except BaseException:
        engine.cancel_jobs()
        drop_stage(*stages)
        raise


def lost_spark(error: BaseException) -> OperationFailed | None:
    """Return the error to report where one that nothing expected came from the end of Spark's JVM."""
    from kops.spark.driver.failures import lost_jvm

    lost = lost_jvm(error)
    return OperationFailed(lost, hint="look for what ended it, as in the kernel's log, and run the command again") if lost else None


def _forget_old(services: Services, folder: Path) -> None:
    """Delete stages whose plans are too old to be undone; those that an unfinished entry needs stay."""
    limit = time.time() - STAGES_KEPT_DAYS * 86_400
    old = [stage for stage in folder.iterdir() if stage.stat().st_mtime < limit]
    if not old:
        return
    needed = _needed_stages(services)
    for stage in old:
        if needed is not None and str(stage) not in needed:
            shutil.rmtree(stage, ignore_errors=True)


def _needed_stages(services: Services) -> set[str] | None:
    """Return the stages of entries that are not finished: they hold what was deleted, or is to be written.

    :returns: None where an entry cannot be read: it may need any stage
    """
    from kops.operations.protocol.journal import EntryStatus, Journal

    stopped = (EntryStatus.OPEN, EntryStatus.PARTIAL, EntryStatus.INTERRUPTED, EntryStatus.UNKNOWN)
    needed: set[str] = set()
    damaged: list[ConfigError] = []
    for entry in Journal(services.directories.state / "journal").entries(damaged.append):
        unfinished = entry.status in stopped and not (entry.undone_by or entry.finished_by)
        if unfinished and isinstance(entry.plan.arguments, dict):
            for store in dict(entry.plan.arguments.get("stores") or {}).values():
                needed |= {store.get("stage") or "", store.get("prior_stage") or ""}
    return None if damaged else needed
