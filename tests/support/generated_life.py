"""What a generated application goes through on a broker: its runs, the damage of its changelogs, and how they are put back."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from support.generated import (
    EMPTIED,
    IN_THE_MIDDLE,
    LOST_KEYS,
    OLD_VALUES,
    ONE_PARTITION,
    SKIPPED,
    STARTED_LATE,
    STOPPED,
    Batch,
    Case,
    Life,
)
from support.generated_stores import Filled
from support.generated_truth import Held, latest
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams import compacted_view, java_command
from support.streams_apps import Cluster, read_record, run_together, runner_arguments, wait_for

Offsets = dict[tuple[str, int], int]
LOST = (0.15, 0.4, 0.8)
"""The share of keys that are lost."""
_SKIPPED_RECORDS = 2
_SAYS = {STOPPED: "STOPPED"}


def live(cluster: Cluster, made: Batch, folder: Path) -> dict[str, Offsets]:
    """Let applications live their lives; return where those began that did not begin at the start of their topics."""
    starts: dict[str, Offsets] = {}
    cluster.create_all({one.topic: one.partitions for life in made.lives for one in life.made.inputs})
    for part, end in enumerate(made.ends):
        records, aborted = made.arriving(part)
        _abort(cluster, made.seed, aborted)
        cluster.produce_all(records)
        for life in made.lives:
            if part == 0 and life.history == STARTED_LATE:
                starts[life.application] = _ends(cluster, life)
                cluster.commit(life.application, starts[life.application])
            elif part == made.parts - 1 and life.history == SKIPPED:
                _skip(cluster, life)
        _run(cluster.servers, made, [life for life in made.lives if life.runs_in(part, made.parts)], end, folder)
    return starts


def start_again(cluster: Cluster, made: Batch, life: Life, folder: Path) -> list[str]:
    """Start an application without its local state, so that it restores all stores; return how it failed, if it did."""
    for at in range(len(life.delays)):
        shutil.rmtree(_folder(folder, life, at) / "state", ignore_errors=True)
    try:
        _run(cluster.servers, made, [life], STOPPED, folder)
    except AssertionError as failed:
        return [f"it does not start: {failed}"]
    return []


def _folder(folder: Path, life: Life, at: int) -> Path:
    return folder / f"{life.application}-{at}"


def _skip(cluster: Cluster, life: Life) -> None:
    """Move an application beyond a few records of each partition."""
    group = life.application
    wait_for(f"{group} to have no members", lambda: not cluster.admin.describe_consumer_groups([group])[group].result(HANG_SECONDS).members)
    committed = cluster.committed(group)
    cluster.commit(group, {at: min(committed.get(at, 0) + _SKIPPED_RECORDS, end) for at, end in _ends(cluster, life).items()})


def _ends(cluster: Cluster, life: Life) -> Offsets:
    wanted = {TopicPartition(one.topic, at): OffsetSpec.latest() for one in life.made.inputs for at in range(one.partitions)}
    found = cluster.admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=HANG_SECONDS)
    return {(at.topic, at.partition): future.result(HANG_SECONDS).offset for at, future in found.items()}


def _abort(cluster: Cluster, name: str, records: Mapping[str, Sequence[Record]]) -> None:
    """Write records in a transaction that is aborted."""
    if not any(records.values()):
        return
    producer = Producer({"bootstrap.servers": cluster.servers, "transactional.id": f"generated-{name}"})
    producer.init_transactions(HANG_SECONDS)
    producer.begin_transaction()
    for topic, record in ((topic, record) for topic, several in records.items() for record in several):
        producer.produce(
            topic, record.value, record.key, partition=record.partition, timestamp=record.timestamp, headers=list(record.headers)
        )
    producer.flush(HANG_SECONDS)
    producer.abort_transaction(HANG_SECONDS)
    for topic, several in records.items():
        if several:
            cluster.settle(topic)


def _run(servers: str, made: Batch, lives: Sequence[Life], end: str, folder: Path) -> None:
    """Run all instances in one process, until they have processed what is there, or are killed."""
    instances = [
        [*runner_arguments(servers, life.made.specification, _folder(folder, life, at)), "--after", str(delay)]
        for life in lives
        for at, delay in enumerate(life.delays)
    ]
    if not instances:
        return
    if end == STOPPED and made.around is None:
        run_together(instances, made.version)
    else:
        _kill_when(end, instances, made, folder / "runs.log")


def _kill_when(end: str, instances: Sequence[Sequence[str]], made: Batch, log: Path) -> None:
    """Run instances in a process that is killed when they have said this; when they are stopped, it has nothing left to do."""
    idle = ["--stop-when-idle"] if end == STOPPED else []
    options = [argument for instance in instances for argument in ("--and", *instance, *idle)][1:]
    command = [*java_command("StreamsRunner", made.version), *options]
    environment = {**os.environ, **(made.around or {})}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environment)

    def lines() -> list[str]:
        return log.read_text(encoding="utf-8", errors="replace").splitlines()

    def said() -> bool:
        ended = process.poll() is not None
        enough = lines().count(_SAYS.get(end, end)) >= (1 if end == IN_THE_MIDDLE else len(instances))
        assert enough or not ended, "\n".join(lines()[-60:])
        return enough

    try:
        wait_for(f"{end} of {len(instances)} instances", said)
    finally:
        process.kill()
        process.wait(HANG_SECONDS)


def logs(cluster: Cluster, life: Life) -> dict[str, list[Record]]:
    """Return the logs of all changelogs of an application, as it restores them, by store; each by partition and offset."""
    stores = {filled.changelog: filled.store for filled in life.made.stores}
    counts = cluster.topics(life.application)
    wanted = [TopicPartition(topic, at, OFFSET_BEGINNING) for topic in stores for at in range(counts[topic])]
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": life.isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
    )
    found: dict[str, list[Record]] = {store: [] for store in stores.values()}
    left, deadline = len(wanted), time.monotonic() + HANG_SECONDS
    try:
        consumer.assign(wanted)
        while left:
            assert time.monotonic() < deadline, f"nothing more from the changelogs of {life.application}"
            for message in consumer.consume(1000, 0.1):
                error = message.error()
                if error is None:
                    found[stores[message.topic()]].append(read_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left -= 1
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return {store: sorted(records, key=lambda record: (record.partition or 0, record.offset or 0)) for store, records in found.items()}


def partitions_of(cluster: Cluster, life: Life) -> dict[str, int]:
    """Return how many partitions the changelog of each store has."""
    counts = cluster.topics(life.application)
    return {filled.store: counts[filled.changelog] for filled in life.made.stores}


def damage(cluster: Cluster, cases: Iterable[Case], held: Mapping[str, Sequence[Record]], partitions: Mapping[str, int], seed: str) -> None:
    """Damage changelogs.

    :param held: their logs
    :param partitions: how many each of them has
    """
    random_ = random.Random(seed)
    trims: dict[str, list[int]] = {}
    writes: dict[str, list[Record]] = {}
    for case in cases:
        log, topic, count = held[case.store], case.filled.changelog, partitions[case.store]
        if case.damage == EMPTIED:
            trims[topic] = list(range(count))
        elif case.damage == ONE_PARTITION:
            trims[topic] = [case.partition % count]
        elif case.damage == LOST_KEYS:
            view, share = compacted_view(log), random_.choice(LOST)
            lost = [key for key in sorted(view) if random_.random() < share]
            writes[topic] = [Record(key, None, view[key].timestamp, (), view[key].partition) for key in lost]
        elif case.damage == OLD_VALUES:
            first: dict[tuple[int | None, bytes | None], Record] = {}
            for record in log:
                first.setdefault((record.partition, record.key), record)
            writes[topic] = [record for record in first.values() if record.value is not None and random_.random() < 0.4]
    cluster.lose(trims)
    cluster.produce_all(writes)


def put_back(cluster: Cluster, stores: Iterable[Filled], truth: Mapping[str, Held], now: Mapping[str, Sequence[Record]]) -> None:
    """Write what changelogs lack of what stores held, as if nothing had happened to them but that old records are gone.

    :param now: their logs
    """
    writes: dict[str, list[Record]] = {}
    for filled in stores:
        there = latest(now[filled.store])
        wanted = {(entry.partition, key): entry for key, entry in truth[filled.store].view.items()}
        strays = [Record(key, None, there[at, key].timestamp, (), at) for at, key in there.keys() - wanted.keys()]
        lacks = [Record(key, was.value, was.timestamp, was.headers, at) for (at, key), was in wanted.items() if there.get((at, key)) != was]
        writes[filled.changelog] = [*strays, *lacks]
    cluster.produce_all(writes)
