"""An application moves to another number of partitions, as its own program says, and goes on as its twin does that never moved.

Each has counts by its key, by another one, by window and by session, and a store of a processor that joins values in their order. One moves
from 4 to 12 partitions with its input topic growing, one to another input topic that has 12, and there and back and there again.
"""

import shutil
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

from support.captured import built_agent
from support.own_apps import App, records
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

OLD, NEW, COUNT, HALF = 4, 12, 800, 400
STORES = ("counts", "letters", "windows", "sessions", "trail")
UNCACHED = "statestore.cache.max.bytes=0"
"""So that every change is sent, and outputs can be compared."""


def made(cluster, application, folder):
    """Return an application that has processed the first records."""
    app = App(cluster, "moves", application, folder / "app", main="Moves", settings=(UNCACHED,))
    cluster.create_all({app.topic("in"): OLD, app.topic("out"): 1, app.topic("trails"): 1})
    cluster.produce(app.topic("in"), records(COUNT)[:HALF])
    app.run()
    return app


def captured(run_kops, app):
    out = app.folder / "capture.json"
    run_kops("streams", "capture", "--out", out, "--", *app.command).ok()
    return out


def of_all(app, store):
    """Return value and time of each key, wherever it lies."""
    return {key: (entry.value, entry.timestamp) for key, entry in app.view(store).items()}


def of_live(app, store):
    """Return them without those that were deleted: of these a tombstone is left only where nothing moved since."""
    return {key: found for key, found in of_all(app, store).items() if found[0] is not None}


def sent(app, topic):
    """Return values and times by key: between keys there is no order."""
    found = defaultdict(list)
    for record in app.cluster.read(app.topic(topic)):
        found[record.key].append((record.value, record.timestamp))
    return found


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
    shutil.rmtree(grown.folder / "state")

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
    shutil.rmtree(moved.folder / "state")
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


def test_it_was_undone(story):
    assert story.seen["undone"] == story.seen["before"]
    assert story.seen["between"][1][story.moved.topic("trail-changelog")] == NEW


def test_a_changelog_that_is_wrong_is_not_moved(story):
    refused = story.seen["wrong"]
    assert refused.code == 5
    assert f"store trail: of 1 keys, such as key-7, the program computes something else over its input of {NEW} partitions" in refused.err
