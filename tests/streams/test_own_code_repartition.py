"""An application moves to another number of partitions, as its own program says, and continues as its twin does that never moved.

Each has counts by its key, by another one, by window and by session, and a store of a processor that joins values in their order. One moves
from 4 to 12 partitions with its input topic growing, one to another input topic that has 12, and there and back and there again.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

from support import processes
from support.captured import built_agent
from support.own_apps import FIRST_MS, App, records
from support.own_moves import COUNT, HALF, STORES, UNCACHED, captured, made, of_live, sent
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

NEW = 12
SLOW, SMALL_BATCHES = 500, ("-X", "message.max.bytes=2000")
"""Bytes a second that the broker takes of the kops that is to be killed, and of a request; it has at most five of them on the way."""


def state_of(cluster, app):
    """Return all that a move changes, but for tombstones, and offsets of its own repartition topic, which is recreated."""
    views = {store: {key: entry for key, entry in app.view(store).items() if entry.value is not None} for store in STORES}
    committed = {place: offset for place, offset in cluster.committed(app.application).items() if "repartition" not in place[0]}
    return views, cluster.topics(app.application), committed


@dataclass
class Story:
    untouched: App
    grown: App
    moved: App
    seen: dict[str, object] = field(default_factory=dict)


@pytest.fixture(scope="module")
def story(cluster, tmp_path_factory, run_kops_alone):
    built_agent()
    kops, folder = run_kops_alone, tmp_path_factory.mktemp("moves")
    prefix, servers = f"own-moves-{folder.parent.name}-{folder.name}", ("-B", cluster.servers)
    apps = {name: made(cluster, f"{prefix}-{name}", folder / name) for name in ("untouched", "grown", "moved")}
    untouched, grown, moved = apps.values()
    captures = {name: captured(kops, apps[name]) for name in ("grown", "moved")}
    seen: dict[str, object] = {}

    def repartition(name, *arguments):
        more = ("--confirm", apps[name].application, *servers)
        return kops("state", "repartition", "--app", captures[name], "--partitions", NEW, *arguments, *more)

    seen["grown"] = repartition("grown", "--grow-inputs").ok()
    grown.forget()

    there = cluster.create(moved.topic(f"in-{NEW}"), NEW)
    instead = ("--input", f"{moved.topic('in')}={there}")
    (held,) = [record for record in cluster.read(moved.topic("trail-changelog")) if record.key == b"key-7"][-1:]
    wrong = Record(held.key, b"wrong", held.timestamp, (), held.partition)
    cluster.produce(moved.topic("trail-changelog"), [wrong])
    seen["wrong"] = repartition("moved", *instead)
    cluster.produce(moved.topic("trail-changelog"), [Record(held.key, held.value, held.timestamp, (), held.partition)])
    seen["before"] = state_of(cluster, moved)
    seen["moved"] = repartition("moved", *instead).ok()
    seen["between"] = state_of(cluster, moved)
    kops("undo", "last", *servers, "--confirm", moved.application).ok()
    seen["undone"] = state_of(cluster, moved)
    repartition("moved", *instead).ok()
    moved.forget()
    moved.inputs, moved.settings = (f"in-{NEW}",), (UNCACHED, f"input=in-{NEW}")

    for app in (untouched, grown, moved):
        (topic,) = app.inputs
        cluster.produce(app.topic(topic), records(COUNT)[HALF:])
        app.run()
    yield Story(untouched, grown, moved, seen)
    for app in apps.values():
        cluster.delete_all(cluster.topics(app.application))


@pytest.mark.parametrize("name", ["grown", "moved"])
@pytest.mark.parametrize("store", STORES)
def test_each_key_is_as_if_it_had_never_moved(story, name, store):
    app = getattr(story, name)
    assert of_live(app, store) == of_live(story.untouched, store)
    assert app.cluster.topics(app.topic(store))[app.topic(f"{store}-changelog")] == NEW
    places = defaultdict(set)
    for record in app.cluster.read(app.topic(f"{store}-changelog")):
        places[record.key].add(record.partition)
    assert {len(found) for found in places.values()} == {1}, "before the move, and after it"


@pytest.mark.parametrize("name", ["grown", "moved"])
@pytest.mark.parametrize("topic", ["out", "trails"])
def test_every_output_was_sent_once_and_is_equal(story, name, topic):
    found = sent(getattr(story, name), topic)
    assert found == sent(story.untouched, topic)
    assert sum(map(len, found.values())) == COUNT


@pytest.mark.parametrize("name", ["grown", "moved"])
def test_the_plan_says_what_the_program_computed(story, name):
    keys = {store: len(view) for store, view in story.seen["before"][0].items()}
    for store in STORES:
        same = f"{store}: of {keys[store]} of {keys[store]} keys the program computes the same over its input of {NEW} partitions"
        assert same in story.seen[name].err, story.seen[name].err
    assert "the program's own processors fill it" in story.seen[name].err
    assert re.search(r"memory: up to .* of state at a time in \d JVMs? with a heap of ", story.seen[name].err)


def test_it_was_undone(story):
    assert story.seen["undone"] == story.seen["before"]
    assert story.seen["between"][1][story.moved.topic("trail-changelog")] == NEW


def test_a_changelog_that_is_wrong_is_not_moved(story):
    refused = story.seen["wrong"]
    assert refused.code == 5
    assert f"store trail: of 1 keys, such as key-7, the program computes something else over its input of {NEW} partitions" in refused.err


def test_a_move_that_was_killed_is_finished_and_the_application_goes_on(cluster, prefix, tmp_path, run_kops, kops_process):
    built_agent()
    app, twin = (made(cluster, f"{prefix}-{name}", tmp_path / name) for name in ("moved", "twin"))
    before = {store: of_live(app, store) for store in STORES}
    there = cluster.create(app.topic(f"in-{NEW}"), NEW)
    arguments = ("--app", captured(run_kops, app), "--partitions", NEW, "--input", f"{app.topic('in')}={there}")
    confirm, client = ("--confirm", app.application, "-B", cluster.servers), f"{prefix}-slow"
    cluster.slow_down(client, SLOW)
    plan = tmp_path / "plan.json"
    run_kops("state", "repartition", *arguments, "--plan-out", plan, "-B", cluster.servers).ok()
    process = kops_process("apply", plan, *confirm, "-X", f"client.id={client}", *SMALL_BATCHES)
    changelogs = [app.topic(f"{store}-changelog") for store in STORES]

    def begun():
        assert process.poll() is None, process.communicate()
        recreated = [name for name in changelogs if cluster.topics(app.application).get(name) == NEW]
        return any(high for name in recreated for _, high in cluster.ends(name).values())

    wait_for("the first record of a new changelog", begun)
    processes.end(process)
    cluster.hear_out(client)
    assert before != {store: of_live(app, store) for store in STORES}
    entry = run_kops("journal", "list", "-o", "json").ok().json[0]
    assert (entry["operation"], entry["status"]) == ("state.repartition", "crashed")
    run_kops("journal", "finish", entry["id"], *confirm).ok()
    assert before == {store: of_live(app, store) for store in STORES}
    app.forget()
    app.inputs, app.settings = (f"in-{NEW}",), (UNCACHED, f"input=in-{NEW}")
    for each in (app, twin):
        cluster.produce(each.topic(each.inputs[0]), records(COUNT)[HALF:])
        each.run()
    for store in STORES:
        assert of_live(app, store) == of_live(twin, store)


def test_what_depends_on_the_keys_of_a_task_is_not_moved(cluster, prefix, tmp_path, run_kops):
    built_agent()
    app = made(cluster, prefix, tmp_path, count=100, name="shared")
    before = state_of(cluster, app)
    arguments = ("--app", captured(run_kops, app), "--partitions", NEW, "--grow-inputs", "--confirm", app.application)
    refused = run_kops("state", "repartition", *arguments, "-B", cluster.servers)
    assert refused.code == 5
    assert "store trail: of " in refused.err
    assert "depends on which keys share a task" in refused.err
    assert state_of(cluster, app) == before


def test_what_depends_on_the_order_of_records_moves_as_it_was(cluster, prefix, tmp_path, run_kops):
    """Of two topics the last value, and how often a cache was flushed."""
    built_agent()
    app, stores = App(cluster, "latest", prefix, tmp_path / "app", inputs=("in", "other")), ("counts", "latest", "updates")
    cluster.create_all({app.topic(name): 4 for name in app.inputs})
    for seed, name in enumerate(app.inputs):
        cluster.produce(app.topic(name), records(HALF, seed=seed))
    app.run()
    before = {store: of_live(app, store) for store in stores}
    arguments = ("--app", captured(run_kops, app), "--partitions", 6, "--grow-inputs", "--confirm", app.application)
    done = run_kops("state", "repartition", *arguments, "-B", cluster.servers).ok()
    keys = len(before["counts"])
    assert f"counts: of {keys} of {keys} keys the program computes the same" in done.err
    assert "store updates is doubtful: " in done.err
    assert before == {store: of_live(app, store) for store in stores}
    assert {cluster.topics(prefix)[app.topic(f"{store}-changelog")] for store in stores} == {6}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (Record(None, b"a0", FIRST_MS, (), 1), "in:1 has a record at offset 0 that has no key"),
        (Record(b"key-1", b"a0", FIRST_MS, (), 1), "chose partitions otherwise or knew of fewer, or the state is wrong"),
    ],
    ids=["null", "custom"],
)
def test_input_of_which_the_new_partition_is_not_known_is_refused(cluster, prefix, tmp_path, run_kops, record, said):
    built_agent()
    app = App(cluster, "moves", prefix, tmp_path / "app", main="Moves", settings=(UNCACHED,))
    cluster.create_all({app.topic("in"): 2, app.topic("out"): 1, app.topic("trails"): 1})
    cluster.produce(app.topic("in"), [record, Record(b"key-2", b"b0", FIRST_MS)])
    app.run()
    arguments = ("--app", captured(run_kops, app), "--partitions", NEW, "--grow-inputs", "--confirm", app.application)
    refused = run_kops("state", "repartition", *arguments, "-B", cluster.servers)
    assert (refused.code, said in refused.err) == (5, True), refused.err
