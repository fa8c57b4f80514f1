"""Real Kafka Streams applications on a broker, and what they left there."""

from __future__ import annotations

import atexit
import contextlib
import json
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from kops.gateways.machine.jars import KAFKA_VERSION
from support.patience import HANG_SECONDS
from support.programs import Program, Record
from support.streams import java_command

ASKED_AGAIN_SECONDS = 15
"""How long librdkafka is left to look for a coordinator: once a new broker answered that there is none yet, it may never ask again."""
LONGEST_PAUSE = 0.25
"""Between two looks at what takes long: a look may start a client."""
_SOCKETS, _CLOSE_WAIT = (Path("/proc/net/tcp"), Path("/proc/net/tcp6")), "08"
"""The system's list of sockets, and the state of one whose other side has closed it (``TCP_CLOSE_WAIT`` of Linux)."""
_CLOSING = {"04", "05", "09", "0B"}
"""States of a socket that its own side has closed, with data that is yet to be sent or acknowledged (``TCP_FIN_WAIT1`` and after it)."""
NO_LEADER_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART)


def watermarks(consumer: Consumer, at: TopicPartition) -> tuple[int, int]:
    """Return log start offset and high watermark, once the partition of a topic that was just made has its leader."""
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        try:
            return consumer.get_watermark_offsets(at, HANG_SECONDS, cached=False)
        except KafkaException as error:
            if error.args[0].code() not in NO_LEADER_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def wait_for(what: str, condition: Callable[[], object], seconds: float = HANG_SECONDS) -> None:
    """Poll until the condition holds.

    :raises TimeoutError: naming what was waited for
    """
    deadline, pause = time.monotonic() + seconds, 0.05
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {seconds:.0f} s still waiting for {what}")
        time.sleep(pause)
        pause = min(1.3 * pause, LONGEST_PAUSE)


class Application:
    """A program running against a broker, in a process of its own.

    :param folder: its log, its specification and its local state
    """

    def __init__(self, servers: str, program: Program, folder: Path, *options: str) -> None:
        self.program = program
        self.state = folder / "state"
        self.log = folder / f"{program.application}.log"
        command = [*java_command("StreamsRunner"), *runner_arguments(servers, program, folder), *options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def lines(self) -> list[str]:
        """Return what it has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()

    def wait_for(self, line: str) -> None:
        """Wait until it has printed this line.

        :raises RuntimeError: when it ends without it
        """

        def said() -> bool:
            ended = self.process.poll() is not None
            if line in self.lines():
                return True
            if ended:
                raise RuntimeError(f"{self.program.application} ended without {line}:\n" + "\n".join(self.lines()[-30:]))
            return False

        wait_for(f"{line} of {self.program.application}", said)

    def stop(self) -> None:
        """Close it cleanly: it commits and leaves its group."""
        self.process.terminate()
        self.process.wait(HANG_SECONDS)
        assert "STOPPED" in self.lines(), "\n".join(self.lines()[-30:])

    def kill(self) -> None:
        """End it at once, if it still runs."""
        self.process.kill()
        self.process.wait(HANG_SECONDS)


@contextlib.contextmanager
def running(servers: str, program: Program, folder: Path, *options: str) -> Iterator[Application]:
    """Run an application; it is killed at the end unless it was stopped."""
    application = Application(servers, program, folder, *options)
    try:
        yield application
    finally:
        application.kill()


def run_to_the_end(servers: str, program: Program, folder: Path, *options: str) -> None:
    """Run an application until it has processed all that is there, and close it."""
    run_together([[*runner_arguments(servers, program, folder), *options]])


def run_all_to_the_end(servers: str, programs: Sequence[tuple[Program, Path]], version: str = KAFKA_VERSION) -> None:
    """Run applications, each with its folder, beside each other until all have processed what is there, and close them.

    :param version: of Kafka Streams
    """
    run_together([runner_arguments(servers, program, folder) for program, folder in programs], version)


def run_together(instances: Sequence[Sequence[str]], version: str = KAFKA_VERSION) -> None:
    """Run instances of applications beside each other until all have processed what is there, and close them.

    :param instances: what ``StreamsRunner`` takes for each
    :param version: of Kafka Streams
    """
    arguments = [argument for instance in instances for argument in ("--and", *instance, "--stop-when-idle")][1:]
    lines = Runners.of(version).run(arguments)
    assert lines.count("STOPPED") == len(instances), "\n".join(lines[-60:])


class Runners:
    """A JVM that runs applications to their ends, one run after the other: to start one for each takes longer than most runs.

    It ends with the tests' process, even where that is killed, since its input ends then.
    """

    _running: ClassVar[dict[str, Runners]] = {}

    def __init__(self, version: str) -> None:
        self.version = version
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with the process
        command, pipe = [*java_command("StreamsRunner", version), "--serve"], subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, encoding="utf-8", errors="replace")
        atexit.register(self.close)

    @classmethod
    def of(cls, version: str) -> Runners:
        """Return the one of a version of Kafka Streams, started if it does not run."""
        if version not in cls._running:
            cls._running[version] = cls(version)
        return cls._running[version]

    def run(self, arguments: Sequence[str]) -> list[str]:
        """Run applications to their ends and return what they printed.

        :raises AssertionError: when one of them fails or takes too long; the next run has another JVM
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        too_long = threading.Timer(HANG_SECONDS, self._process.kill)
        too_long.start()
        lines: list[str] = []
        try:
            self._process.stdin.write(json.dumps(list(arguments)) + "\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                lines.append(line.rstrip("\n"))
                if lines[-1].startswith("DONE "):
                    break
        finally:
            too_long.cancel()
        if lines[-1:] != ["DONE 0"]:
            self._errors.seek(0)
            said = self._errors.read()[-3000:]
            self.close()
            raise AssertionError("\n".join([*lines[-30:], said]))
        return lines[:-1]

    def close(self) -> None:
        self._running.pop(self.version, None)
        self._process.kill()
        self._process.communicate()
        self._errors.close()
        atexit.unregister(self.close)


def runner_arguments(servers: str, program: Program, folder: Path) -> list[str]:
    """Return what ``StreamsRunner`` takes first, for an application whose specification and local state are in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    specification = folder / f"{program.application}.json"
    specification.write_text(json.dumps(program.as_json()), encoding="utf-8")
    return [servers, str(specification), str(folder / "state")]


class Cluster:
    """The broker as a test sees it: plain functions over confluent-kafka, not kops' own gateways."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._producer: Producer | None = None
        """Of all that is written: an idempotent producer takes half a second to get its id."""

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        self.admin.create_topics([new], operation_timeout=HANG_SECONDS)[topic].result(HANG_SECONDS)
        wait_for(f"{topic} to be known", lambda: topic in self.topics(topic))
        return topic

    def create_all(self, topics: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
        """Create many topics at once, each with its number of partitions."""
        new = [NewTopic(name, num_partitions=count, replication_factor=1, config=dict(config or {})) for name, count in topics.items()]
        for made in self.admin.create_topics(new, operation_timeout=HANG_SECONDS).values():
            made.result(HANG_SECONDS)
        wait_for("the topics to be known", lambda: topics.keys() <= self.topics().keys())

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets for a group without members."""
        partitions = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        request = ConsumerGroupTopicPartitions(group, partitions)

        def committed() -> bool:  # the coordinator may not have heard of a new topic yet
            try:
                done = self.admin.alter_consumer_group_offsets([request], request_timeout=ASKED_AGAIN_SECONDS)[group].result(HANG_SECONDS)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._TIMED_OUT:
                    raise
                return False
            return not any(at.error for at in done.topic_partitions)

        wait_for(f"the offsets of {group} to be committed", committed)

    def topics(self, prefix: str = "") -> dict[str, int]:
        """Return the number of partitions of each topic."""
        found = self.admin.list_topics(timeout=HANG_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in found.items() if name.startswith(prefix)}

    def delete(self, *topics: str) -> None:
        """Delete topics, and wait until they are gone; some may be gone already, though a broker still names them."""
        for topic, gone in self.admin.delete_topics(list(topics), operation_timeout=HANG_SECONDS).items():
            try:
                gone.result(HANG_SECONDS)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
            wait_for(f"{topic} to go", lambda topic=topic: topic not in self.topics(topic))

    def delete_all(self, topics: Iterable[str]) -> None:
        """Delete many topics at once, without waiting for the last trace of them."""
        for gone in self.admin.delete_topics(list(topics), operation_timeout=HANG_SECONDS).values():
            gone.result(HANG_SECONDS)

    def produce(self, topic: str, records: Iterable[Record]) -> None:
        """Write records to one topic; see :meth:`produce_all`."""
        self.produce_all({topic: records})

    def produce_all(self, records: Mapping[str, Iterable[Record]]) -> None:
        """Write records with their timestamps and headers; without a partition, Java's default partitioner chooses."""
        failed: list[KafkaError] = []
        settings = {"partitioner": "murmur2_random", "linger.ms": 5, "enable.idempotence": True, "log_level": 2}
        producer = self._producer or Producer({"bootstrap.servers": self.servers, **settings})
        for topic in records:
            producer.list_topics(topic, timeout=HANG_SECONDS)  # otherwise it hears of new partitions after minutes
        self._producer = None  # until all is written: after an error the next writer gets another one
        for topic, record in ((topic, record) for topic, several in records.items() for record in several):
            assert record.timestamp, "librdkafka takes a timestamp of 0 as now"
            while len(producer) >= 50_000:
                producer.poll(0.1)
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                timestamp=record.timestamp,
                headers=list(record.headers),
                partition=-1 if record.partition is None else record.partition,
                on_delivery=lambda error, _message: failed.append(error) if error else None,
            )
        assert producer.flush(HANG_SECONDS) == 0
        assert not failed, failed[0]
        self._producer = producer

    def read(self, topic: str, isolation: str = "read_committed") -> list[Record]:
        """Return all records of a topic, partition by partition, in the order of their offsets."""
        partitions = [TopicPartition(topic, partition, 0) for partition in range(self.topics(topic)[topic])]
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
            }
        )
        records: list[Record] = []
        try:
            consumer.assign([TopicPartition(topic, at.partition, watermarks(consumer, at)[0]) for at in partitions])
            left = len(partitions)
            while left:
                message = consumer.poll(HANG_SECONDS)
                assert message is not None, f"nothing from {topic}"
                error = message.error()
                if error is None:
                    records.append(read_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left -= 1
                else:
                    raise RuntimeError(str(error))
        finally:
            consumer.close()
        return sorted(records, key=lambda record: (record.partition or 0, record.offset or 0))

    def ends(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return the log start offset and the high watermark of each partition, open transactions included."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "unused", "isolation.level": "read_uncommitted"})
        try:
            partitions = range(self.topics(topic)[topic])
            return {at: watermarks(consumer, TopicPartition(topic, at)) for at in partitions}
        finally:
            consumer.close()

    def settle(self, topic: str) -> None:
        """Wait until the ended transactions of a topic have their markers, which the coordinator writes later; none may be open."""
        partitions = [TopicPartition(topic, at) for at in range(self.topics(topic)[topic])]

        def latest(isolation: IsolationLevel) -> list[int]:
            found = self.admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.latest()), isolation_level=isolation)
            return [found[at].result(HANG_SECONDS).offset for at in partitions]

        wait_for(
            "the markers of ended transactions",
            lambda: latest(IsolationLevel.READ_COMMITTED) == latest(IsolationLevel.READ_UNCOMMITTED),
        )

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return a group's committed offsets.

        Through kafka-python, as librdkafka's admin client ends the process when a starting broker is asked; with a new client each time, as
        one keeps for ever the coordinator that it found once.
        """
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError as KafkaPythonError

        deadline = time.monotonic() + HANG_SECONDS
        while True:
            try:
                with contextlib.closing(KafkaAdminClient(bootstrap_servers=self.servers.split(","))) as admin:
                    found = admin.list_group_offsets({group: None})[group]
                return {(at.topic, at.partition): committed.offset for at, committed in found.items()}
            except KafkaPythonError as error:
                if not error.retriable or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def set_config(self, topic: str, **settings: str | None) -> None:
        """Set a topic's settings (with ``_`` for ``.``); ``None`` takes one away."""
        entries = [
            ConfigEntry(
                name.replace("_", "."),
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(HANG_SECONDS)

    def slow_down(self, client_id: str, bytes_per_second: float, quota: str = "producer_byte_rate") -> None:
        """Let the broker slow down what this client writes: AlterClientQuotas (49), version 0, for which Apache's tool takes a JVM.

        :param quota: another one: ``consumer_byte_rate``, or ``request_percentage`` of a broker's thread
        """
        entity = struct.pack(">ii", 1, 1) + _string("client-id") + _string(client_id)
        change = struct.pack(">i", 1) + _string(quota) + struct.pack(">d??", bytes_per_second, False, False)
        request = struct.pack(">hhi", 49, 0, 1) + _string("tests") + entity + change
        host, _, port = self.servers.split(",")[0].rpartition(":")
        with socket.create_connection((host, int(port)), HANG_SECONDS) as connection, connection.makefile("rb") as answer:
            connection.sendall(struct.pack(">i", len(request)) + request)
            _length, _number, _throttled, count, error = struct.unpack(">iiiih", answer.read(18))
        assert (count, error) == (1, 0), f"the quota of {client_id} is refused: error {error}"

    def hear_out(self, client_id: str) -> None:
        """Let the broker read what a client that was killed had sent it, slowed down until now; what is deleted then stays so.

        A request names topics: one that is read late goes into whatever has that name by then. Until the broker has read the end of a
        connection, its socket is in CLOSE_WAIT; while the dead client's system still has data to send, that side is in FIN_WAIT1. Where
        the system shows no sockets, nothing is waited for.
        """
        self.slow_down(client_id, 10**9)
        ports = {f"{int(server.rpartition(':')[2]):04X}" for server in self.servers.split(",")}

        def is_read() -> bool:
            found = (line.split() for path in _SOCKETS if path.exists() for line in path.read_text(encoding="ascii").splitlines()[1:])
            return not any(
                (local.rpartition(":")[2] in ports and state == _CLOSE_WAIT) or (remote.rpartition(":")[2] in ports and state in _CLOSING)
                for _, local, remote, state, *_ in found
            )

        wait_for("the broker to have read what the dead client sent", is_read)

    def config(self, topic: str) -> dict[str, str]:
        """Return the settings that the topic itself has."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self.admin.describe_configs([resource])[resource].result(HANG_SECONDS)
        return {name: entry.value for name, entry in entries.items() if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}

    def trim(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records of a topic before these offsets; its policy may have been changed just now."""
        self._trim({topic: before})

    def _trim(self, before: Mapping[str, Mapping[int, int]]) -> None:
        left = {topic: [TopicPartition(topic, at, offset) for at, offset in of_one.items()] for topic, of_one in before.items()}

        def trimmed() -> bool:
            refused = set()
            for at, future in self.admin.delete_records(
                [at for some in left.values() for at in some], operation_timeout=HANG_SECONDS
            ).items():
                try:
                    future.result(HANG_SECONDS)
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.POLICY_VIOLATION:  # the broker does not know the new policy yet
                        raise
                    refused.add(at.topic)
            for topic in set(left) - refused:
                del left[topic]
            return not left

        if left:
            wait_for(f"{', '.join(left)} to be trimmed", trimmed)

    def lose(self, partitions: Mapping[str, Iterable[int]]) -> None:
        """Delete all records of these partitions of compacted topics; the offsets continue from where they were."""
        policies = {topic: self.config(topic).get("cleanup.policy", "delete") for topic in partitions}
        for topic in partitions:
            self.set_config(topic, cleanup_policy="delete")  # DeleteRecords is refused on a topic that is only compacted
        try:
            self._trim({topic: dict.fromkeys(numbers, OFFSET_END) for topic, numbers in partitions.items()})
        finally:
            for topic, policy in policies.items():
                self.set_config(topic, cleanup_policy=policy)

    def empty(self, topic: str) -> None:
        """Delete all records of a compacted topic."""
        self.lose({topic: self.ends(topic)})
        assert not self.read(topic)

    def recreate(self, topic: str, partitions: int | None = None) -> None:
        """Delete a topic and create it again with the same settings; its offsets start at 0."""
        config, partitions = self.config(topic), partitions or self.topics(topic)[topic]
        self.delete(topic)
        self.create(topic, partitions, config)


def forget(application: Application | Path) -> None:
    """Delete the local state of an application that does not run."""
    shutil.rmtree(application.state if isinstance(application, Application) else application)


def without_offsets(records: Iterable[Record]) -> list[Record]:
    """Return the records as comparable between two topics."""
    return [replace(record, offset=None) for record in records]


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def read_record(message) -> Record:
    """Return what a client of librdkafka has read."""
    _kind, timestamp = message.timestamp()
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Record(message.key(), message.value(), timestamp, headers, message.partition(), message.offset())
