"""`kops state rebuild --app`: applications that kops knows only by a capture run on a broker, lose their state, and get it back."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from support import processes
from support.captured import built_agent
from support.own_apps import FIRST_MS, App, Example, records
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import wait_for
from support.verified import checks, summaries

RETENTION_MS = 40_000
"""Of the windows of ``Apps.texts``, size and grace, from 3.0 on."""

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.fixture
def app(cluster, prefix, tmp_path, request):
    """Run an application over its input, to the end."""

    def run(name, partitions=3, inputs=("in",), count=600, also=(), **more):
        made = (Example if "." in name else App)(cluster, name, prefix, tmp_path / "app", inputs=inputs, **more)
        topics = {made.topic(each): partitions for each in (*inputs, "out")}
        request.addfinalizer(lambda: cluster.delete_all(cluster.topics().keys() & topics.keys()))
        cluster.create_all(topics)
        for seed, each in enumerate(inputs):
            cluster.produce(made.topic(each), [*records(count, seed=seed), *also])
        made.run()
        return made

    return run


@pytest.fixture
def captured(run_kops, tmp_path):
    def run(app):
        out = tmp_path / "capture.json"
        run_kops("streams", "capture", "--out", out, "--", *app.command).ok()
        return out

    return run


def verified(run_kops, cluster, capture, *more):
    """Return of each store the verdict, the severity of each finding, and what they say."""
    done = run_kops("state", "verify", "--app", capture, *more, "-B", cluster.servers, "-o", "json")
    return {row["store"]: (row["verdict"], checks(row), summaries(row)) for row in done.json}


def rebuilt(run_kops, cluster, capture, *more):
    arguments = ("--app", capture, "--yes", *more, "-B", cluster.servers, "-o", "json")
    return run_kops("state", "rebuild", *arguments).ok()


def check(before, after):
    """Compare views of changelogs. Windows that have expired in the store, which their changelog still had, need not come back."""
    windows, kept = before.pop("windows"), after.pop("windows")
    assert after == before
    assert kept.items() <= windows.items()
    latest = {}
    for key, entry in windows.items():
        latest[entry.partition] = max(latest.get(entry.partition, 0), start_of(key))
    held = {key for key, entry in windows.items() if start_of(key) >= latest[entry.partition] - RETENTION_MS}
    assert len(held) > len(latest)
    assert held <= kept.keys()


def start_of(key):
    """Return the start of the window of a key: before its number of four bytes."""
    return int.from_bytes(key[-12:-4], "big")


@pytest.mark.parametrize("outgrown", [False, True])
def test_a_program_with_a_repartition_comes_back(app, captured, run_kops, cluster, monkeypatch, outgrown):
    """Also where its stores and what it wrote are too much for its JVM."""
    made = app("texts")
    capture = captured(made)
    before = {store: made.view(store) for store in ("texts", "windows", "letters")}
    committed = cluster.committed(made.application)
    seen = verified(run_kops, cluster, capture)
    assert seen["texts"][:2] == seen["windows"][:2] == ("proven", {})
    assert seen["letters"][:2] == ("proven", {"record_order": "note"})
    assert "all keys agreed in 2 legal orders of records, though" in seen["letters"][2]
    assert f"3 tasks write into {made.topic('letters-repartition')}" in seen["letters"][2]
    for store in before:
        cluster.empty(made.topic(f"{store}-changelog"))
    if outgrown:
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dkops.memory.bytes=0")
    done = rebuilt(run_kops, cluster, capture)
    check(before, {store: made.view(store) for store in before})
    assert cluster.committed(made.application) == committed
    size, heap = r"up to [\d.]+ [KM]iB of state at a time", r"with a heap of 494.9 MiB( each)?"
    seen = r"\(estimated from the size of the input, as if each record had a key of its own\)"
    assert re.search(rf"memory: {size} in \d JVMs? {heap}, and in Spark's workers {seen}; [\d.]+ GiB was free", done.err), done.err
    moved = [store for store in before if f"{store}: in 3 of its 3 tasks it outgrew the memory and went to RocksDB" in done.err]
    assert moved == ([*before] if outgrown else [])


def test_what_depends_on_the_order_of_two_topics_is_counted_and_named(app, captured, run_kops, cluster):
    made = app("latest", inputs=("in", "other"))
    capture = captured(made)
    names = ("counts", "latest", "updates")
    before = {store: made.view(store) for store in names}
    seen = verified(run_kops, cluster, capture, *(word for name in names for word in ("--store", name)))
    by_order = {key for key in before["latest"] if key.endswith(b"7")}
    assert seen["counts"][:2] == ("proven", {"record_order": "note"})
    assert "all keys agreed in 2 legal orders of records, though" in seen["counts"][2]
    assert "each task of sub-topology 0 reads" in seen["counts"][2]
    assert seen["latest"][1]["depends_on"] == "warning"
    assert f"{len(by_order)} of 60 keys depend on the order of records, such as key-" in seen["latest"][2]
    assert "keep (Apps$Latest)" in seen["latest"][2]
    assert seen["updates"][1]["depends_on"] == "warning"
    assert f"{len(before['updates'])} of {len(before['updates'])} keys depend on the order" in seen["updates"][2]
    assert "the stores counts pass on what their caches hold" in seen["updates"][2]

    cluster.empty(made.topic("counts-changelog"))
    rebuilt(run_kops, cluster, capture, "--store", "counts")
    assert made.view("counts") == before["counts"]


@pytest.mark.long
def test_a_program_that_goes_by_what_another_run_gives_otherwise(app, captured, run_kops, cluster):
    """By offsets of a repartition topic, which follow from the order of records, and by stream time that another class schedules."""
    seen = verified(run_kops, cluster, captured(app("numbered")))
    (_, found, why) = seen["numbers"]
    assert {found[check] for check in ("depends_on", "punctuators")} == {"warning"}
    assert "60 of 60 keys depend on the order of records" in why
    assert "schedules 1 punctuator by stream time, which its capture does not show" in why


@pytest.mark.long
def test_a_processors_store_comes_back(app, captured, run_kops, cluster):
    made = app("seen", inputs=("in", "other"))
    capture = captured(made)
    before = made.view("seen")
    cluster.empty(made.topic("seen-changelog"))
    done = rebuilt(run_kops, cluster, capture)
    assert "count (Apps$Seen)" in done.err
    assert "the timestamps of 60 of 60 keys depend on the order of records" in done.err
    assert made.view("seen") == before


@pytest.mark.long
@pytest.mark.parametrize("name", ["wordcount.WordCountDemo", "wordcount.WordCountProcessorDemo"])
def test_apaches_examples_come_back(app, captured, run_kops, cluster, name):
    made = app(name, partitions=1)
    capture = captured(made)
    (store,) = [each["name"] for each in json.loads(capture.read_text())["stores"]]
    before = made.view(store)
    assert len(before) > 50
    seen = verified(run_kops, cluster, capture, "--wait-empty", "60s")
    assert seen[store][0] == "proven", seen
    cluster.empty(made.topic(f"{store}-changelog"))
    done = rebuilt(run_kops, cluster, capture)
    assert made.view(store) == before, done.err


@pytest.mark.long
@pytest.mark.parametrize("version", ["2.8.2", "4.4.0"])
def test_what_a_function_keeps_in_a_field_is_seen(app, captured, run_kops, cluster, version):
    """It was restarted, so that another run gives another state."""
    made = app("kept", partitions=1, count=100, version=version)
    cluster.produce(made.topic("in"), records(100, seed=2))
    made.run()
    (verdict, found, why) = verified(run_kops, cluster, captured(made))["counted"]
    forgets = "58 of 58 keys depend on when the application was restarted, since the program keeps something in fields or variables"
    assert (verdict, found["depends_on"], forgets in why) == ("doubtful", "warning", True), why


@pytest.fixture
def misbehaving(app, captured, cluster, tmp_path):
    """Run an application with records at which it throws, or waits, as long as a file is there; empty its changelog."""

    def make(*how):
        files = [tmp_path / each for each in how]
        also = [Record(b"key-1", b"!%s:%s" % (file.name.encode(), str(file).encode()), FIRST_MS + 900_000) for file in files]
        made = app("texts", also=also)
        before = made.view("texts")
        cluster.empty(made.topic("texts-changelog"))
        arguments = ("state", "rebuild", "--app", captured(made), "--store", "texts", "--yes", "-B", cluster.servers)
        return made, before, arguments, files

    return make


@pytest.mark.long
def test_what_a_program_throws_leaves_the_changelogs(misbehaving, run_kops, cluster):
    made, before, arguments, (thrown,) = misbehaving("throw")
    emptied = cluster.ends(made.topic("texts-changelog"))

    thrown.touch()
    failed = run_kops(*arguments)
    assert failed.code == 1
    at = next(record for record in cluster.read(made.topic("in")) if record.value and record.value.startswith(b"!throw"))
    assert "the program threw java.lang.IllegalStateException: a value that cannot be joined in Apps.misbehave(Apps.java" in failed.err
    assert f"while it was to process at {made.topic('in')}:{at.partition} offset {at.offset}" in failed.err
    thrown.unlink()

    assert cluster.ends(made.topic("texts-changelog")) == emptied
    run_kops(*arguments).ok()
    assert made.view("texts") == before


@pytest.mark.long
def test_what_is_too_much_for_the_memory_leaves_the_changelogs(misbehaving, run_kops, cluster):
    made, before, arguments, (filled,) = misbehaving("fill")
    emptied, committed = cluster.ends(made.topic("texts-changelog")), cluster.committed(made.application)
    filled.touch()
    failed = run_kops(*arguments)
    assert failed.code == 1
    assert "the memory of its JVM of 494.9 MiB was not enough, and nothing was written: java.lang.OutOfMemoryError" in failed.err
    assert cluster.ends(made.topic("texts-changelog")) == emptied
    assert cluster.committed(made.application) == committed
    assert run_kops("journal", "list", "-o", "json").ok().json == []
    filled.unlink()
    run_kops(*arguments).ok()
    assert made.view("texts") == before


@pytest.mark.long
def test_neither_kops_nor_its_program_outlives_the_other(misbehaving, run_kops, kops_process, cluster):
    made, before, arguments, (waited,) = misbehaving("wait")
    emptied = cluster.ends(made.topic("texts-changelog"))
    waited.touch()
    working = kops_process(*arguments)
    os.kill(held(waited), signal.SIGKILL)
    assert "was ended by signal 9 while kops ran its tasks" in working.communicate(timeout=HANG_SECONDS)[1]
    assert working.returncode == 1
    waited.write_text("")
    working = kops_process(*arguments)
    program = held(waited)
    working.kill()
    wait_for("the program to end", lambda: not Path(f"/proc/{program}").exists())
    assert cluster.ends(made.topic("texts-changelog")) == emptied
    waited.unlink()
    run_kops(*arguments).ok()
    assert made.view("texts") == before


@pytest.mark.long
def test_workers_of_spark_that_are_killed_leave_the_changelogs(misbehaving, run_kops, kops_process, cluster):
    made, before, arguments, (waited,) = misbehaving("wait")
    emptied = cluster.ends(made.topic("texts-changelog"))
    waited.touch()
    working = kops_process(*arguments)
    program = held(waited)
    started = processes.descendants({working.pid})
    for worker in processes.named(started, "python_daemon"):
        os.kill(worker, signal.SIGKILL)
    said = working.communicate(timeout=HANG_SECONDS)[1]
    assert working.returncode == 1, said
    assert "worker" in said, said
    processes.wait_until_gone({*started, program})
    assert cluster.ends(made.topic("texts-changelog")) == emptied
    waited.unlink()
    run_kops(*arguments).ok()
    assert made.view("texts") == before


def held(file):
    """Return the id of the process that waits as long as a file is there."""
    wait_for("the program to meet the record that makes it wait", file.read_text)
    return int(file.read_text())


@pytest.mark.long
@pytest.mark.parametrize("version", ["2.8.2", "3.9.1", "4.0.0"])
def test_exactly_once_of_older_versions(app, captured, run_kops, cluster, version):
    guarantee = "exactly_once" if version == "2.8.2" else "exactly_once_v2"
    made = app("texts", version=version, settings=[f"processing.guarantee={guarantee}"])
    capture = captured(made)
    before = {store: made.view(store) for store in ("texts", "windows", "letters")}
    for store in before:
        cluster.empty(made.topic(f"{store}-changelog"))
    rebuilt(run_kops, cluster, capture, "--accept-doubtful", "--wait-empty", "90s")
    check(before, {store: made.view(store) for store in before})
