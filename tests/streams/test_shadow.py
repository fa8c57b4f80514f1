"""`kops state rebuild --shadow`: the real program runs beside its application, under another id, and what it writes is compared."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kops.config.paths import directories
from support import forked
from support import own_kinds as kinds
from support.captured import built_agent
from support.own_apps import FIRST_MS, App, records, without_expired
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

STORES = ("texts", "windows", "letters")
PARTITIONS = 3


def started(cluster, application, folder, also=(), **more):
    """Run an application over its input, to the end."""
    built_agent()
    app = App(cluster, "texts", application, folder, **more)
    cluster.create_all({app.topic("in"): PARTITIONS, app.topic("out"): PARTITIONS})
    cluster.produce(app.topic("in"), [*records(600), *also])
    app.run()
    return app


def held(app):
    return {store: app.view(store) for store in STORES}


def kept(views):
    return {**views, "windows": without_expired(views["windows"])}


def lose(cluster, app, stores=STORES):
    for store in stores:
        cluster.empty(app.topic(f"{store}-changelog"))


def arguments(cluster, app, *more, word=True):
    words = ("--confirm", f"{app.application}-shadow") if word else ()
    return ("state", "rebuild", "--shadow", *words, "--yes", "--accept-inexact", *more, "-B", cluster.servers, "--", *app.command)


def left(cluster, app, folder):
    """Return what there is of its shadows: topics, groups, folders."""
    begin = f"{app.application}-shadow-"
    groups = [group.group_id for group in cluster.admin.list_consumer_groups().result(HANG_SECONDS).valid]
    return SimpleNamespace(
        topics=list(cluster.topics(begin)),
        groups=[group for group in groups if group.startswith(begin)],
        folders=[each.name for each in folder.glob(f"{begin}*")],
    )


@pytest.fixture
def folder(home):
    return directories(os.environ).state / "shadows"


@pytest.fixture
def own(cluster, prefix, tmp_path):
    """Run an application of a test's own, whose topics go with those of its prefix."""
    return lambda application=prefix, **more: started(cluster, application, tmp_path / application, **more)


def test_a_shadow_brings_the_state_back_and_leaves_nothing(own, run_kops, cluster, folder):
    app = own()
    before, committed, sent = held(app), cluster.committed(app.application), cluster.ends(app.topic("out"))
    lose(cluster, app)
    done = run_kops(*arguments(cluster, app)).ok()
    assert held(app) == kept(before), done.err
    assert cluster.committed(app.application) == committed
    assert cluster.ends(app.topic("out")) == sent
    found = left(cluster, app, folder)
    assert (found.topics, found.groups, found.folders) == ([], [], [])
    assert "the program really runs" in done.err
    assert "letters 8 keys, exactness C" in done.err
    assert "the shadow ran in one order of records" in done.err
    assert "texts 60 keys, exactness A" in done.err, done.err


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "guarantee"),
    [("2.8.2", "at_least_once"), ("2.8.2", "exactly_once"), ("3.9.1", "exactly_once_v2"), ("4.4.0", "exactly_once_v2")],
)
def test_it_goes_on_like_one_that_lost_nothing(own, prefix, run_kops, cluster, folder, version, guarantee):
    how = {"version": version, "settings": [f"processing.guarantee={guarantee}"]}
    app, twin = own(f"{prefix}-one", **how), own(f"{prefix}-two", **how)
    lose(cluster, app)
    run_kops(*arguments(cluster, app, "--wait-empty", "90s")).ok()
    found = left(cluster, app, folder)
    assert (found.topics, found.groups, found.folders) == ([], [], [])
    for each in (app, twin):
        cluster.produce(each.topic("in"), [Record(record.key, record.value, record.timestamp + 600_000) for record in records(200, seed=7)])
        each.folder = each.folder / "elsewhere"  # no local state
        each.run()
    ours, theirs = held(app), held(twin)
    assert {store: ours[store] for store in ("texts", "letters")} == {store: theirs[store] for store in ("texts", "letters")}
    assert without_expired(ours["windows"]) == without_expired(theirs["windows"])
    last = [{record.key: record.value for record in cluster.read(each.topic("out"))} for each in (app, twin)]
    assert last[0] == last[1]


@pytest.mark.long
@pytest.mark.parametrize(("fork", "exactness"), [(forked.renamed, "A"), (forked.hidden, "C")])
def test_a_fork_of_the_library(own, run_kops, cluster, tmp_path, fork, exactness):
    """Its tasks cannot be run by themselves where what kops calls is missing; a shadow's state is back where what it sees is enough."""
    app = own(fork=fork)
    before = held(app)
    lose(cluster, app)
    if fork is forked.renamed:
        capture = tmp_path / "capture.json"
        run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
        refused = run_kops("state", "rebuild", "--app", capture, "--store", "texts", "--yes", "-B", cluster.servers)
        assert refused.code == 1, refused.err
        assert "the tasks of this Kafka Streams cannot be run one by one: java.lang.NoSuchMethodError" in refused.err
        assert "kops state rebuild --shadow -- COMMAND" in refused.err
    said = run_kops(*arguments(cluster, app)).ok().err
    assert held(app) == kept(before), said
    assert f"texts 60 keys, exactness {exactness}" in said
    assert ("org.apache.kafka.streams.processor.internals.StreamTask: what it calls could not be seen" in said) == (exactness == "C")


@pytest.mark.long
@pytest.mark.parametrize("version", ["2.8.2", "4.4.0"])
def test_a_clock_at_loading_and_what_helpers_schedule_are_seen(cluster, prefix, tmp_path, run_kops, version):
    """Where each task reads one partition, so that no other order of records is a reason."""
    built_agent()
    app = App(cluster, "numbered", prefix, tmp_path / "app", version=version)
    cluster.create_all({app.topic("in"): 1})
    cluster.produce(app.topic("in"), records(100))
    app.run()
    lose(cluster, app, ["numbers"])
    said = run_kops(*arguments(cluster, app)).ok().err
    assert "exactness C" in said
    loaded = "a class of its nodes was seen to call, outside of tasks, what gives another answer each time, or on another machine"
    assert f"{loaded}: Apps$Numbered.<clinit>: Instant.now" in said
    assert "the program schedules 1 punctuator by stream time, which its capture does not show" in said
    assert "the program schedules 1 punctuator by wall-clock time, which was another when the shadow ran" in said
    assert "one order of records" not in said


@pytest.mark.long
@pytest.mark.parametrize("version", ["2.8.2", "4.4.0"])
def test_what_a_function_keeps_in_a_field_is_seen(cluster, prefix, tmp_path, run_kops, version):
    """By a run of its tasks, and by a shadow; the application was restarted, so that both give another state than it had."""
    built_agent()
    app, capture = App(cluster, "kept", prefix, tmp_path / "app", version=version), tmp_path / "capture.json"
    cluster.create_all({app.topic("in"): 1})
    for seed in (1, 2):
        cluster.produce(app.topic("in"), records(100, seed=seed))
        app.run()
    run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
    verified = run_kops("state", "verify", "--app", capture, "-B", cluster.servers, "-o", "json")
    (row,) = verified.json
    forgets = "the program keeps something between records in fields, which a restart forgets, and when it was restarted is not known"
    assert (row["exactness"], f"{forgets}: Apps$Counting.calls" in row["reasons"]) == ("C", True), row
    assert row["different"] > 0, row
    lose(cluster, app, ["counted"])
    said = run_kops(*arguments(cluster, app)).ok().err
    assert "exactness C" in said
    assert f"{forgets}: Apps$Counting.calls" in said
    assert "one order of records" not in said


@pytest.fixture(scope="module")
def texts(cluster, tmp_path_factory):
    """An application that throws at one record, and waits at another, as long as a file is there."""
    made = tmp_path_factory.mktemp("texts")
    files = {how: made / how for how in ("throw", "halt", "wait")}
    also = [Record(b"key-1", b"!%s:%s" % (how.encode(), str(file).encode()), FIRST_MS + 900_000) for how, file in files.items()]
    app = started(cluster, f"shadowed-{made.parent.name}", made / "app", also)
    yield SimpleNamespace(app=app, held=held(app), **files)
    cluster.delete_all(cluster.topics(app.application))


@pytest.fixture
def misbehaves(texts, cluster, run_kops):
    """Lose a changelog, run a shadow while a file is there, and see that nothing was written and nothing is left."""
    lose(cluster, texts.app, ["texts"])
    emptied = cluster.ends(texts.app.topic("texts-changelog"))

    def run(file, *more, folder):
        file.touch()
        try:
            failed = run_kops(*arguments(cluster, texts.app, "--store", "texts", *more))
        finally:
            file.unlink()
        found = left(cluster, texts.app, folder)
        assert (found.topics, found.groups, found.folders) == ([], [], []), failed.err
        assert cluster.ends(texts.app.topic("texts-changelog")) == emptied
        assert failed.code == 1, failed.err
        return failed.err

    return run


@pytest.mark.long
def test_what_the_program_throws_is_said(texts, misbehaves, folder):
    said = misbehaves(texts.throw, folder=folder)
    assert "the shadow failed: java.lang.IllegalStateException: a value that cannot be joined; it printed last:" in said


@pytest.mark.long
def test_a_program_that_ends_by_itself(texts, misbehaves, folder):
    said = misbehaves(texts.halt, folder=folder)
    assert "ended with exit code 3 while it ran as a shadow; it printed last:" in said
    assert "a program may print what it likes" in said


@pytest.mark.long
def test_a_program_that_never_gets_through(texts, misbehaves, folder):
    said = misbehaves(texts.wait, "--still-for", "5s", folder=folder)
    assert "has stood still for 5s; it waits for" in said
    assert texts.app.topic("in") in said


def waiting(file):
    """Return the id of the process that waits as long as a file is there."""
    wait_for("the program to meet the record that makes it wait", file.read_text)
    return int(file.read_text())


@pytest.mark.long
def test_what_a_killed_kops_leaves_is_taken_away_by_the_next(texts, run_kops, kops_process, cluster, folder):
    lose(cluster, texts.app, ["texts"])
    texts.wait.touch()
    working = kops_process(*arguments(cluster, texts.app, "--store", "texts"))
    program = waiting(texts.wait)
    working.kill()
    wait_for("the program to end", lambda: not Path(f"/proc/{program}").exists())
    texts.wait.unlink()
    found = left(cluster, texts.app, folder)
    assert found.topics
    assert (len(found.groups), len(found.folders)) == (1, 1)
    entry = run_kops("journal", "list", "-o", "json").ok().json[0]
    assert (entry["operation"], entry["status"]) == ("state.shadow", "crashed")
    shown = run_kops("journal", "finish", entry["id"], "-B", cluster.servers, "--dry-run").ok()
    assert "delete" in shown.out
    assert left(cluster, texts.app, folder) == found

    done = run_kops(*arguments(cluster, texts.app, "--store", "texts")).ok()
    assert f"{found.groups[0]}, which was stopped, is gone" in done.err
    after = left(cluster, texts.app, folder)
    assert (after.topics, after.groups, after.folders) == ([], [], [])
    assert texts.app.view("texts") == texts.held["texts"]
    statuses = [(row["operation"], row["status"]) for row in run_kops("journal", "list", "-o", "json").ok().json]
    assert ("state.shadow", "crashed") not in statuses
    assert ("state.shadow", "finished") in statuses

    run_kops("undo", "last", "-B", cluster.servers, "--yes").ok()
    assert not {key for key, entry in texts.app.view("texts").items() if entry.value is not None}


@pytest.mark.long
def test_records_that_were_given_again_are_no_certainty(own, prefix, tmp_path, kops_process, cluster):
    """The shadow falls out of its group while it processes a record: that is processed twice, and the store holds both."""
    file = tmp_path / "wait"
    app = own(also=[Record(b"key-1", b"!wait:%s" % str(file).encode(), FIRST_MS + 900_000)], settings=["max.poll.interval.ms=10000"])
    before = app.view("texts")
    lose(cluster, app, ["texts"])
    file.touch()
    working = kops_process(*arguments(cluster, app, "--store", "texts"))
    waiting(file)
    (made,) = [topic for topic in cluster.topics(f"{prefix}-shadow-") if topic.endswith("-texts-changelog")]
    group = made.removesuffix("-texts-changelog")
    wait_for("it to fall out of its group", lambda: not cluster.admin.describe_consumer_groups([group])[group].result(HANG_SECONDS).members)
    file.unlink()
    said = working.communicate(timeout=HANG_SECONDS)[1]
    assert working.returncode == 0, said
    assert app.view("texts") != before
    assert "texts 60 keys, exactness C" in said
    assert "given to the shadow's tasks again, as after a rebalance, and may have counted twice" in said


@pytest.mark.long
@pytest.mark.parametrize("stop", ["interrupt", "kill the program"])
def test_a_shadow_that_is_stopped_is_taken_away(texts, run_kops, kops_process, cluster, folder, stop):
    lose(cluster, texts.app, ["texts"])
    texts.wait.touch()
    working = kops_process(*arguments(cluster, texts.app, "--store", "texts"))
    program = waiting(texts.wait)
    if stop == "interrupt":
        working.send_signal(signal.SIGINT)
    else:
        os.kill(program, signal.SIGKILL)
    said = working.communicate(timeout=HANG_SECONDS)[1]
    texts.wait.unlink()
    assert working.returncode == (130 if stop == "interrupt" else 1), said
    found = left(cluster, texts.app, folder)
    assert (found.topics, found.groups, found.folders) == ([], [], []), said
    if stop != "interrupt":
        assert "was ended by signal 9 while it ran as a shadow" in said


@pytest.mark.long
def test_it_asks_before_the_program_runs(texts, run_kops, cluster, folder, tmp_path):
    unsaid = run_kops(*arguments(cluster, texts.app, word=False))
    assert (unsaid.code, f"--confirm {texts.app.application}-shadow" in unsaid.err) == (5, True), unsaid.err
    shown = run_kops("state", "rebuild", "--shadow", "--dry-run", "-o", "json", "-B", cluster.servers, "--", *texts.app.command).ok()
    plan = json.loads(shown.out)
    assert (plan["operation"], plan["confirm"]) == ("state.shadow", f"{texts.app.application}-shadow")
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *texts.app.command).ok()
    for more, said in (
        (("--at", "end"), "leave out --at"),
        (("--write", "replace"), "leave out --write"),
        (("--into", "other"), "leave out --into"),
    ):
        refused = run_kops("state", "rebuild", "--app", capture, "--shadow", *more, "-B", cluster.servers)
        assert (refused.code, said in refused.err) == (2, True), refused.err
    assert left(cluster, texts.app, folder).topics == []


@pytest.mark.long
def test_a_program_with_another_topology_is_refused(texts, run_kops, cluster, folder, tmp_path):
    lose(cluster, texts.app, ["texts"])
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *texts.app.command).ok()
    app = replace(texts.app, name="numbered")
    refused = run_kops(*arguments(cluster, app, "--app", capture, "--store", "texts"))
    assert refused.code == 5, refused.err
    lost = f"the changelogs of its sub-topology 0 are none, and were {app.topic('texts-changelog')}"
    assert f"has another topology than when it was captured: {lost}" in refused.err
    found = left(cluster, app, folder)
    assert (found.topics, found.groups, found.folders) == ([], [], [])


@pytest.mark.long
def test_records_that_wait_would_count_twice(own, run_kops, cluster, folder):
    app = own()
    place = (app.topic("letters-repartition"), 0)
    committed = cluster.committed(app.application)
    cluster.produce(place[0], [Record(b"a", b"later", FIRST_MS, (), 0)])
    refused = run_kops(*arguments(cluster, app))
    assert refused.code == 5, refused.err
    assert f"{place[0]}:0 holds records from offset {committed.get(place, 0)}" in refused.err
    assert "they would count twice" in refused.err
    assert left(cluster, app, folder).topics == []


@pytest.mark.long
def test_stores_of_each_kind(cluster, prefix, tmp_path, run_kops, folder):
    """Two stores depend on the time of day, or on the order in which several topics met; the others are as they were."""
    built_agent()
    inputs = [*kinds.INPUTS, "tagged"]
    app = App(cluster, "kinds", prefix, tmp_path / "app", main="Kinds", inputs=[name for name in inputs if name != "names"])
    app.settings = [kinds.SECOND]
    cluster.create_all({app.topic(name): kinds.PARTITIONS[name] for name in (*inputs, "out")})
    cluster.produce_all({app.topic(name): kinds.given(name, seed) for seed, name in enumerate(inputs)})
    app.run()
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
    stores = [each["name"] for each in json.loads(capture.read_text())["stores"] if each["kind"] != "versioned"]
    before, sent = {store: kinds.view_of(app, store) for store in stores}, cluster.ends(app.topic("out"))
    for store in stores:
        cluster.empty(app.topic(f"{store}-changelog"))
    words = ("--confirm", f"{app.application}-shadow", "--yes", "--accept-inexact")
    done = run_kops("state", "rebuild", "--app", capture, "--shadow", *words, "-B", cluster.servers).ok()
    after = {store: kinds.view_of(app, store) for store in stores}
    assert {store for store in stores if before[store] != after[store]} == set(), done.err
    assert cluster.ends(app.topic("out")) == sent
    found = left(cluster, app, folder)
    assert (found.topics, found.groups, found.folders) == ([], [], [])
