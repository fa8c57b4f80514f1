"""What the input of a real application, and its commits, show: offsets that tools moved, records that are gone, times from elsewhere.

All applications run in one JVM, twice: what makes the difference lies between the two runs. Then their changelogs are lost, so that no
surviving key tells.
"""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kops.formats.streams.offset_metadata import decode
from support import twins
from support.command_line import Outcome
from support.patience import HANG_SECONDS
from support.programs import Program, Record, Window
from support.streams_apps import Cluster, wait_for
from support.verified import findings, summaries

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

PARTITIONS = 2
START = int(time.time() * 1000) - 3_600_000
"""Recent: the broker deletes what is older than its retention."""
COUNT = Program("count", "long", value="string")
PAYLOAD = Program("count", "long", value="json", schema="ts bigint", timestamp="value.ts")
COMPACTED = {"cleanup_policy": "compact", "segment_ms": "100", "min_cleanable_dirty_ratio": "0.001", "delete_retention_ms": "100"}


def some(first: int, count: int = 40, value: bytes = b"x") -> tuple[Record, ...]:
    """Records of twelve keys, which stay in their partition, a second apart."""
    return tuple(Record(b"k%d" % (at % 12), value, START + at * 1000, (), at % PARTITIONS) for at in range(first, first + count))


def payload(first: int) -> tuple[Record, ...]:
    """Records whose own time is an hour after their records' time."""
    return tuple(replace(one, value=b'{"ts":%d}' % (one.timestamp + 3_600_000)) for one in some(first))


def _tool(change: int) -> Callable[[Cluster, Program], None]:
    """Set the offset of the first partition, as tools do: without metadata."""

    def move(cluster: Cluster, program: Program) -> None:
        place = (program.topic, 0)
        cluster.commit(program.application, {place: cluster.committed(program.application)[place] + change})

    return move


def _begin(cluster: Cluster, program: Program) -> None:
    cluster.commit(program.application, dict.fromkeys([(program.topic, number) for number in range(PARTITIONS)], 3))


def _recreate(cluster: Cluster, program: Program) -> None:
    """Delete the topic and create it again, with more records than the application had read of it."""
    cluster.recreate(program.topic)
    cluster.produce(program.topic, some(100, 60))


def _nothing(cluster: Cluster, program: Program) -> None:
    pass


def _abort(cluster: Cluster, program: Program) -> None:
    producer = Producer({"bootstrap.servers": cluster.servers, "transactional.id": program.topic})
    producer.init_transactions(60)
    for value, end in ((b"y", producer.commit_transaction), (b"z", producer.abort_transaction)):
        producer.begin_transaction()
        for record in some(80, 10, value):
            producer.produce(program.topic, record.value, record.key, partition=record.partition, timestamp=record.timestamp)
        producer.flush(HANG_SECONDS)
        end(60)
    cluster.settle(program.topic)


@dataclass(frozen=True)
class Case:
    """An application, and what is done between its two runs.

    :param begins: it runs before
    """

    between: Callable[[Cluster, Program], None] = _nothing
    program: Program = COUNT
    records: Callable[[int], tuple[Record, ...]] = some
    begins: bool = True
    guarantee: str = "at_least_once"


CASES = {
    "plain": Case(),
    "exactly": Case(guarantee="exactly_once_v2"),
    "again": Case(_tool(0)),
    "skipped": Case(_tool(2)),
    "repeated": Case(_tool(-2)),
    "from_start": Case(_tool(-20)),
    "later": Case(_begin, begins=False),
    "recreated": Case(_recreate),
    "aborted": Case(_abort),
    "payload": Case(program=PAYLOAD, records=payload),
    "windows": Case(program=replace(COUNT, window=Window("window", 10_000, retention=86_400_000))),
}
HOLES, JSON_HOLES = "holes", "json_holes"
HOLED = {HOLES: Case(), JSON_HOLES: Case(program=replace(COUNT, value="json"), records=lambda first: some(first, value=b'{"id":1}'))}
"""The second is not read as whole batches, as Spark has to decode its values."""


class Scene(twins.Scene):
    def kops(self, name: str, verb: str, *options: object, without: str = "") -> Outcome:
        """Run a verb with a state file that leaves a field out."""
        file = Path(self.twins[name].state_file)
        body = json.loads(file.read_text())
        for place in (body["streams"], body["stores"]["totals"]["from"]):
            place.pop(without, None)
        file.write_text(json.dumps(body))
        return super().kops(name, verb, *options, file=str(file))

    def lost(self, name: str, without: str = "") -> str:
        """Lose the changelog, and return why it is not rebuilt; empty where it would be."""
        twin = self.twins[name]
        if twin.cluster.read(twin.program.changelog):
            self.lose(name)
        found = self.kops(name, "rebuild", "--dry-run", without=without)
        assert found.code in (0, 5), found
        if found.code == 0:
            assert " computed" in found.err, found
            return ""
        assert "is doubtful" in found.err, found
        return found.err


@pytest.fixture(scope="module")
def scene(cluster, tmp_path_factory, run_kops_alone):
    prefix = f"input-{uuid.uuid4().hex[:8]}"
    made = {}
    for name, case in {**CASES, **HOLED}.items():
        made[name] = twins.make(cluster, case.program, f"{prefix}-{name}", tmp_path_factory.mktemp(name), case.guarantee, PARTITIONS)
    twins.process_each([(made[name], case.records(0)) for name, case in {**CASES, **HOLED}.items() if case.begins])
    for name in HOLED:
        cluster.set_config(made[name].program.topic, **COMPACTED)
    for name, case in CASES.items():
        if not case.begins:
            cluster.produce(made[name].program.topic, case.records(0))
        case.between(cluster, made[name].program)
    twins.process_each([(made[name], case.records(40)) for name, case in CASES.items()])
    yield Scene(made, run_kops_alone)
    cluster.delete_all(cluster.topics(prefix))


@pytest.mark.parametrize(
    "name", ["plain", "exactly", "payload", *(pytest.param(name, marks=pytest.mark.long) for name in ("again", "windows"))]
)
def test_what_nothing_contradicts_is_not_doubted(scene, name):
    found = scene.verified(name)
    assert (found["verdict"], findings(found)) == ("proven", [])
    assert not scene.lost(name)


def test_the_partition_time_that_kafka_streams_commits(scene):
    from kafka import KafkaAdminClient

    for name in ("plain", "exactly", "payload"):
        twin = scene.twins[name]
        shift = 3_600_000 if name == "payload" else 0
        admin = KafkaAdminClient(bootstrap_servers=twin.cluster.servers.split(","))
        committed = admin.list_group_offsets({twin.program.application: None})[twin.program.application]
        admin.close()
        times = {at.partition: decode(found.metadata).partition_time_ms - START - shift for at, found in committed.items()}
        assert times == {0: 78_000, 1: 79_000}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("skipped", "forward from 20 to 22"),
        ("repeated", "back from 20 to 18"),
        pytest.param("from_start", "back from 20 to 0", marks=pytest.mark.long),
        ("later", "to 3 on 20"),
        ("recreated", "deleted"),
    ],
)
def test_what_tools_did_to_the_commits_contradicts(scene, name, said):
    found = scene.verified(name, code=7)
    assert found["verdict"] == "doubtful"
    assert said in summaries(found)
    assert said in scene.lost(name)


def test_times_from_elsewhere_contradict_a_file_that_does_not_say_so(scene):
    assert "takes times from elsewhere" in scene.lost("payload", without="timestamp")


def test_aborted_records_are_doubted_where_the_file_does_not_say_whether_they_count(scene):
    found = scene.verified("aborted")
    assert (found["verdict"], findings(found)) == ("proven", []), "the keys of the changelog settle it"
    twin = scene.twins["aborted"]
    file = Path(twin.state_file)
    assert "isolation" not in file.read_text()
    # a store that was proven is not doubted again; the file of another name has never been
    body = json.loads(file.read_text())
    body["streams"]["cache"] = False
    twin.cluster.empty(twin.program.changelog)
    file.write_text(json.dumps(body))
    refused = scene.run_kops("state", "rebuild", file, "-B", twin.cluster.servers, "--dry-run")
    assert (refused.code, "transactions were aborted in" in refused.err) == (5, True), refused
    body["streams"]["isolation"] = "read_uncommitted"
    file.write_text(json.dumps(body))
    scene.run_kops("state", "rebuild", file, "-B", twin.cluster.servers, "--dry-run").ok()


@pytest.mark.parametrize("name", [HOLES, pytest.param(JSON_HOLES, marks=pytest.mark.long)])
def test_records_that_compaction_took_from_the_middle_are_missed(scene, name):
    twin = scene.twins[name]
    topic, cluster = twin.program.topic, twin.cluster
    before = twin.view()

    def cleaned() -> bool:
        now = int(time.time() * 1000)
        cluster.produce(topic, [Record(b"roll", b"{}", now, (), number) for number in range(PARTITIONS)])  # rolls the segment
        return sum(record.key != b"roll" for record in cluster.read(topic)) < 40

    wait_for("the cleaner to come by", cleaned)
    cluster.set_config(topic, cleanup_policy="delete")
    found = scene.verified(name, code=7)
    assert (found["verdict"], found["proven"] + found["impossible"], found["doubtful"]) == ("impossible", found["keys"], 0), found
    assert "records are gone from the middle of the input" in summaries(found)
    for options in ((), ("--accept-doubtful",)):
        refused = scene.kops(name, "rebuild", "--yes", *options)
        assert (refused.code, "records are gone from the middle" in refused.err) == (5, True), refused
    assert twin.view() == before
