"""Where an application began, what its consumer reads and where its keys go: a state file that says it gives the state that is held.

Real applications, all in one JVM, read topics of which an earlier part never counted for them. Then their changelogs are lost.
"""

import json
import shutil
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from support.patience import HANG_SECONDS
from support.programs import KeyBy, Program, Record, Several, Window
from support.streams import compacted_view
from support.streams_apps import Cluster, run_all_to_the_end
from support.streams_cases import START
from support.verified import checks

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

PARTITIONS = 3
BEGAN = {0: 5, 1: 7, 2: 3}
SECOND = 1000
KEPT = (("windowstore.changelog.additional.retention.ms", str(100 * 365 * 86_400_000)),)


def counted(count: int = 60) -> list[Record]:
    """Numbers by keys that stay in their partition, a second apart."""
    return [Record(b"k%d" % (at % 12), b"%d" % at, START + at * SECOND, (), at % PARTITIONS) for at in range(count)]


def priced(count: int = 60) -> list[Record]:
    """Items of which each comes from one partition, so that the order of its prices is known."""
    return [
        Record(b"%d" % at, b'{"item":"item-%d","price":%d.25}' % (at % 9, at), START + at * SECOND, (), at % 9 % PARTITIONS)
        for at in range(count)
    ]


@dataclass
class App:
    """An application of several stores, each of a topic of its own.

    :param stores: what is added to the state file, by store
    """

    cluster: Cluster
    programs: tuple[Program, ...]
    folder: Path
    streams: dict[str, Any]
    stores: dict[str, dict[str, Any]]
    config: tuple[tuple[str, str], ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        prefix = f"history-{uuid.uuid4().hex[:8]}"
        self.name = f"{prefix}-app"
        self.programs = tuple(
            replace(
                program,
                application=self.name,
                topic=f"{prefix}-{program.store}",
                merged_with=f"{prefix}-{program.merged_with}" if program.merged_with else None,
                config=(),
            )
            for program in self.programs
        )

    def __getitem__(self, store: str) -> Program:
        return next(program for program in self.programs if program.store == store)

    @property
    def runs(self) -> tuple[Several, Path]:
        return Several(self.programs, self.config), self.folder

    def state_file(self, *, without: str = "", **changed: dict[str, Any]) -> str:
        """Write the state file.

        :param without: a field that is left out
        :param changed: what is different of a store
        """
        body = Several(self.programs).state_file()
        body["streams"] |= self.streams
        for store, fields in self.stores.items():
            for name, value in (fields | changed.get(store, {})).items():
                into = body["stores"][store]["from"] if name == "start" else body["stores"][store]
                into[name] = value
        for place in (body["streams"], *body["stores"].values(), *(store["from"] for store in body["stores"].values())):
            place.pop(without, None)
        file = self.folder / "state.yaml"
        file.write_text(json.dumps(body), encoding="utf-8")
        return str(file)

    def views(self) -> dict[str, dict[bytes, Any]]:
        return {program.store: compacted_view(self.cluster.read(program.changelog)) for program in self.programs}

    def begin(self, store: str, offsets: dict[int, int]) -> None:
        self.cluster.commit(self.name, {(self[store].topic, partition): offset for partition, offset in offsets.items()})


@dataclass
class Story:
    kops: Any
    began: App
    other: App
    waiting: App
    based: App
    held: dict[str, dict[str, dict[bytes, Any]]]

    def verify(self, app: App, *options: str, **changes: Any):
        return self.kops("state", "verify", app.state_file(**changes), "-B", app.cluster.servers, "-o", "json", *options)

    def rebuild(self, app: App, *options: str, **changes: Any):
        return self.kops("state", "rebuild", app.state_file(**changes), "-B", app.cluster.servers, *options)


LAST_LETTER = KeyBy("string", "item", "byletter", 4, "last_letter")


@pytest.fixture(scope="module")
def story(cluster, run_kops_alone, tmp_path_factory):
    began = App(
        cluster,
        (
            Program("count", "long", value="string", store="counts"),
            Program("count", "long", value="string", store="windows", window=Window("window", 10 * SECOND, retention=86_400 * SECOND)),
            Program("table", "string", value="string", store="latest"),
            Program("sum", "double", field="price", key_by=KeyBy("string", "item", "byitem"), store="sums"),
        ),
        tmp_path_factory.mktemp("began"),
        {},
        {
            "counts": {"start": {str(partition): offset for partition, offset in BEGAN.items()}},
            "windows": {"start": dict(BEGAN)},
            "latest": {"start": 6},
            "sums": {"start": f"@{START + 30 * SECOND}"},
        },
        KEPT,
    )
    other = App(
        cluster,
        (
            Program("count", "long", value="string", store="committed"),
            Program("sum", "double", field="price", key_by=LAST_LETTER, store="placed"),
            Program("count", "long", value="string", store="narrow", merged_with="wide"),
        ),
        tmp_path_factory.mktemp("other"),
        {"isolation": "read_committed"},
        {"placed": {"partitioner": "custom"}},
        (("main.consumer.isolation.level", "read_committed"),),
    )
    by_item = {"key": "string", "schema": "item string, price double"}
    joined = Program("concat", "string", field="item", key_by=KeyBy("string", "item", "joined"), store="joined", **by_item)
    reduced = {"aggregate": {"reducer": "support.reducers:items", "as": "string"}}
    waiting = App(
        cluster,
        (
            Program("sum", "double", field="price", key_by=KeyBy("string", "item", "summed"), store="summed", **by_item),
            Program("count", "long", key_by=KeyBy("string", "item", "spread"), store="spread", **by_item),
            Program(
                "count",
                "long",
                key_by=KeyBy("string", "item", "timed"),
                store="timed",
                window=Window("window", 10 * SECOND, grace=86_400 * SECOND, retention=2 * 86_400 * SECOND),
                **by_item,
            ),
            joined,
        ),
        tmp_path_factory.mktemp("waiting"),
        {},
        {"joined": reduced},
        (*KEPT, ("repartition.purge.interval.ms", str(3_600_000))),
    )
    based = App(
        cluster,
        (
            Program("count", "long", value="string", store="counts"),
            Program("sum", "double", field="price", key_by=KeyBy("string", "item", "sums"), store="sums", **by_item),
            joined,
            Program("concat", "string", value="string", store="kept"),
            Program("table", "string", value="string", store="latest"),
            Program("first", "string", value="string", store="firsts"),
            Program("min", "double", field="price", key_by=KeyBy("string", "item", "least"), store="least", **by_item),
            Program("last", "double", field="price", key_by=KeyBy("string", "item", "lasts"), store="lasts", **by_item),
        ),
        tmp_path_factory.mktemp("based"),
        {},
        {"joined": reduced},
    )
    apps = (began, other, waiting, based)
    cluster.create_all({program.topic: PARTITIONS for app in apps for program in app.programs})
    cluster.produce_all({program.topic: priced() if program.store == "sums" else counted() for program in began.programs})
    feed_others(cluster, other, waiting, based)
    began.begin("counts", BEGAN)
    began.begin("windows", BEGAN)
    began.begin("latest", dict.fromkeys(range(PARTITIONS), 6))
    began.begin("sums", first_at(began["sums"].topic, cluster, START + 30 * SECOND))
    run_all_to_the_end(cluster.servers, [app.runs for app in apps])
    yield Story(run_kops_alone, began, other, waiting, based, {app.name: app.views() for app in apps})
    for app in apps:
        cluster.delete_all(cluster.topics(app.name.removesuffix("-app")))


def feed_others(cluster: Cluster, other: App, waiting: App, based: App) -> None:
    cluster.create(str(other["narrow"].merged_with), 2 * PARTITIONS)
    cluster.produce_all(
        {
            **{program.topic: priced() for program in waiting.programs},
            waiting["spread"].topic: [replace(record, partition=at % PARTITIONS) for at, record in enumerate(priced())],
            other["committed"].topic: counted(30),
            other["placed"].topic: priced(),
            other["narrow"].topic: counted(),
            str(other["narrow"].merged_with): [replace(record, partition=None) for record in counted()],
        }
    )
    abort(cluster, other["committed"].topic, counted(7))
    cluster.produce(other["committed"].topic, counted(12))
    cluster.produce_all({program.topic: half_of(program)[0] for program in based.programs})


def half_of(program: Program) -> tuple[list[Record], list[Record]]:
    """Return the records before and after the snapshot: of each half some keys have none."""
    records = priced() if program.key_by else counted()
    names = [key if program.key_by is None else b"item-%d" % (at % 9) for at, key in enumerate(record.key for record in records)]
    first = [record for record, name in zip(records[:30], names, strict=False) if not name.endswith(b"3")]
    return first, [record for record, name in zip(records[30:], names[30:], strict=True) if not name.endswith(b"4")]


def abort(cluster: Cluster, topic: str, records: list[Record]) -> None:
    """Write records in a transaction that is aborted."""
    producer = Producer({"bootstrap.servers": cluster.servers, "transactional.id": f"{topic}-aborted"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for record in records:
        producer.produce(topic, record.value, record.key, partition=record.partition, timestamp=record.timestamp)
    producer.flush(HANG_SECONDS)
    producer.abort_transaction(60)
    cluster.settle(topic)


def first_at(topic: str, cluster: Cluster, milliseconds: int) -> dict[int, int]:
    """Return the first offset from a time on, as a reset to it finds them."""
    found: dict[int, int] = {}
    for record in cluster.read(topic):
        if record.timestamp >= milliseconds:
            found.setdefault(record.partition, record.offset)
    return found


def lost(app: App, *stores: str) -> None:
    """Empty the changelogs of stores."""
    for store in stores:
        app.cluster.empty(app[store].changelog)


def of_store(outcome, store: str) -> dict[str, Any]:
    return next(row for row in outcome.json if row["store"] == store)


def a_state_file_that_says_where_the_application_began_gives_its_state(story):
    outcome = story.verify(story.began).ok()
    assert {row["store"]: row["verdict"] for row in outcome.json} == dict.fromkeys(("counts", "windows", "latest", "sums"), "proven")


def one_that_does_not_say_it_differs(story):
    outcome = story.verify(story.began, "--store", "counts", without="start")
    assert outcome.code == 7  # its first commits are those of a tool: what it began with is in question
    assert of_store(outcome, "counts")["different"] == 11  # of k2, all five came after


def a_start_that_nobody_knows_is_refused(story):
    outcome = story.rebuild(story.began, "--yes", counts={"start": "latest"})
    assert outcome.code == 5
    assert "where it began is not known" in outcome.err


WRONG_STARTS: tuple[tuple[Any, int, str], ...] = (
    ({"0": 5}, 2, "partition 1"),
    ({"0": 1, "1": 1, "2": 1, "3": 1}, 2, "partition 3"),
    (10_000, 5, "began at 10000"),
)
"""A partition is missing, a partition too many, after the end."""


def a_start_that_cannot_be(story):
    for start, code, said in WRONG_STARTS:
        outcome = story.rebuild(story.began, "--yes", counts={"start": start})
        assert outcome.code == code, outcome.err
        assert said in outcome.err


def what_is_lost_comes_back_as_it_was(story):
    lost(story.began, "counts", "windows", "latest", "sums")
    story.rebuild(story.began, "--yes").ok()
    assert story.began.views() == story.held[story.began.name]


def a_consumer_that_reads_what_is_committed_and_keys_of_a_partitioner_of_its_own(story):
    outcome = story.verify(story.other).ok()
    assert {row["store"]: row["verdict"] for row in outcome.json} == dict.fromkeys(("committed", "placed", "narrow"), "proven")
    assert "has 6 partitions" in outcome.err
    assert {entry.partition for entry in story.held[story.other.name]["narrow"].values()} <= {0, 1, 2}


def without_isolation_what_was_aborted_would_count(story):
    outcome = story.verify(story.other, "--store", "committed", without="isolation")
    assert outcome.code == 7
    assert checks(of_store(outcome, "committed"))["aborted_transactions"] == "warning"
    assert of_store(outcome, "committed")["different"] == 7


def keys_off_the_default_partitioner_contradict_a_file_that_names_no_other(story):
    outcome = story.verify(story.other, "--store", "placed", without="partitioner")
    assert outcome.code == 1
    assert of_store(outcome, "placed")["verdict"] == "doubtful"
    assert "partitioner: custom" in outcome.err
    refused = story.rebuild(story.other, "--yes", "--store", "placed", without="partitioner")
    assert refused.code == 5
    assert "partitioner: custom" in refused.err
    assert story.other.views() == story.held[story.other.name]


def a_changelog_with_more_partitions_is_rebuilt_and_keeps_them(story):
    changelog = story.other["narrow"].changelog
    lost(story.other, "committed", "narrow")
    story.rebuild(story.other, "--yes", "--store", "committed", "--store", "narrow").ok()
    assert story.other.views() == story.held[story.other.name]
    assert story.other.cluster.topics(changelog)[changelog] == 2 * PARTITIONS
    lost(story.other, "narrow")
    story.rebuild(story.other, "--store", "narrow", "--write", "replace", "--confirm", changelog).ok()
    assert story.other.cluster.topics(changelog)[changelog] == 2 * PARTITIONS
    assert story.other.views() == story.held[story.other.name]


def keys_whose_partition_nothing_tells_are_not_written(story):
    lost(story.other, "placed")
    refused = story.rebuild(story.other, "--yes", "--store", "placed")
    assert refused.code == 5
    assert "partition of 9 keys is not known" in refused.err
    assert not story.other.cluster.read(story.other["placed"].changelog)


@dataclass
class Later:
    """What was seen before and after the second run of two applications.

    :param snapshot: of the one that starts from it
    :param held: by that one at the end
    """

    refused: Any
    rebuilt: Any
    before: dict[str, dict[bytes, Any]]
    snapshot: str
    at: dict[tuple[str, int], int]
    held: dict[str, dict[bytes, Any]]


def ran_on(story, tmp_path_factory) -> Later:
    """Rebuild one application while records wait, take a snapshot of the other, and run both once more."""
    app, based = story.waiting, story.based
    cluster, committed = app.cluster, app.cluster.committed(app.name)
    unread = {place: max(0, offset - 4) for place, offset in committed.items() if place[0].endswith("-repartition")}
    cluster.commit(app.name, unread)
    shutil.rmtree(app.folder / "state")
    lost(app, *(program.store for program in app.programs))
    earlier = {place: offset - 5 for place, offset in committed.items() if place[0] == app["summed"].topic}
    cluster.commit(app.name, earlier)
    refused = story.rebuild(app, "--yes")
    cluster.commit(app.name, {place: committed[place] for place in earlier})
    rebuilt = story.rebuild(app, "--yes")
    before = app.views()

    snapshot = str(tmp_path_factory.mktemp("snapshots") / "based")
    story.kops("state", "snapshot", based.state_file(), "--to", snapshot, "-B", cluster.servers).ok()
    at = {place: offset for place, offset in cluster.committed(based.name).items() if not place[0].endswith("-repartition")}
    cluster.produce_all({program.topic: half_of(program)[1] for program in based.programs})
    run_all_to_the_end(cluster.servers, [app.runs, based.runs])
    return Later(refused, rebuilt, before, snapshot, at, based.views())


def records_that_wait_in_a_repartition_topic_do_not_count_yet(story, later):
    assert later.refused.code == 5
    assert "are not the last ones of the input" in later.refused.err
    later.rebuilt.ok()
    assert f"records wait in {story.waiting['summed'].repartition}" in later.rebuilt.err
    held = story.held[story.waiting.name]
    assert all(later.before[store] != held[store] for store in held)
    assert story.waiting.views() == held


def what_retention_has_deleted_comes_from_a_snapshot(story, later):
    app = story.based
    for program in app.programs:
        app.cluster.trim(program.topic, {at: offset for (topic, at), offset in later.at.items() if topic == program.topic})
    alone = story.verify(app, "--store", "counts")
    assert [row["verdict"] for row in alone.json] == ["impossible"]
    some = [option for store in ("counts", "sums", "joined") for option in ("--store", store)]
    outcome = story.verify(app, *some, "--from-snapshot", later.snapshot).ok()
    assert {row["verdict"] for row in outcome.json} == {"proven"}
    lost(app, *(program.store for program in app.programs))
    assert story.rebuild(app, "--yes", "--store", "counts").code == 5
    story.rebuild(app, "--yes", "--from-snapshot", later.snapshot).ok()
    assert app.views() == later.held


def a_snapshot_that_is_not_of_this_input_is_refused(story, later):
    app = story.based
    other = story.rebuild(story.began, "--yes", "--from-snapshot", later.snapshot)
    assert other.code == 2
    assert "is a snapshot of the application" in other.err
    counts = next(program for program in app.programs if program.store == "counts")
    place, offset = next((place, offset) for place, offset in later.at.items() if place[0] == counts.topic)
    now = app.cluster.committed(app.name)[place]
    app.cluster.trim(counts.topic, {place[1]: offset + 1})
    old = ("--yes", "--store", "counts", "--from-snapshot", later.snapshot)
    assert "is impossible" in story.rebuild(app, *old).err
    app.cluster.commit(app.name, {place: offset - 1})
    newer = story.rebuild(app, *old)
    app.cluster.commit(app.name, {place: now})
    assert newer.code == 5
    assert "use an older snapshot" in newer.err


def test_where_an_application_began(story):
    a_state_file_that_says_where_the_application_began_gives_its_state(story)
    one_that_does_not_say_it_differs(story)
    a_start_that_nobody_knows_is_refused(story)
    a_start_that_cannot_be(story)
    what_is_lost_comes_back_as_it_was(story)


def test_what_a_consumer_reads_and_where_keys_go(story):
    a_consumer_that_reads_what_is_committed_and_keys_of_a_partitioner_of_its_own(story)
    without_isolation_what_was_aborted_would_count(story)
    keys_off_the_default_partitioner_contradict_a_file_that_names_no_other(story)
    a_changelog_with_more_partitions_is_rebuilt_and_keeps_them(story)
    keys_whose_partition_nothing_tells_are_not_written(story)


def test_records_since_the_snapshot_and_waiting_records_count_for_an_application_that_ran_on(story, tmp_path_factory):
    later = ran_on(story, tmp_path_factory)
    records_that_wait_in_a_repartition_topic_do_not_count_yet(story, later)
    what_retention_has_deleted_comes_from_a_snapshot(story, later)
    a_snapshot_that_is_not_of_this_input_is_refused(story, later)
