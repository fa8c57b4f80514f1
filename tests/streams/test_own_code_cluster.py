"""`kops state rebuild CAPTURE` where Spark is elsewhere: two workers whose Python has no kops run the program's tasks."""

import json
import os
import signal
import socket
from functools import partial
from pathlib import Path

import pytest

from support import processes
from support.captured import built_agent
from support.isolation import FOR_SHORT_RUNS
from support.own_apps import FIRST_MS, App, records, without_expired
from support.own_moves import STORES, captured, made
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

DIFFERENCES = ("missing", "different", "unexpected")


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.fixture
def on_spark(cluster, home, tmp_path, python_without_kops, kops_process):
    """Start kops with the Spark of an address."""

    def start(spark, *arguments, **conf):
        config = home / "config" / "kops" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "600m",
            "spark.executor.extraJavaOptions": FOR_SHORT_RUNS,
            "spark.sql.shuffle.partitions": "3",
            "spark.pyspark.python": str(python_without_kops),
            **conf,
        }
        config.write_text(
            f'[contexts.here]\nbootstrap_servers = ["{cluster.servers}"]\n'
            f'[contexts.here.spark]\nmaster = "{spark}"\nstaging_directory = "{tmp_path / "staging"}"\n'
            "[contexts.here.spark.conf]\n" + "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in settings.items())
        )
        return kops_process(*arguments, "-c", "here", "-o", "json")

    return start


@pytest.fixture
def on_cluster(on_spark, spark_cluster):
    """Start kops with the Spark of two workers."""
    return partial(on_spark, spark_cluster)


def ended(process):
    """Return the exit code, the output and the messages of kops."""
    out, err = process.communicate(timeout=HANG_SECONDS)
    return process.returncode, out, err


@pytest.fixture
def app(cluster, prefix, tmp_path, run_kops, request):
    """Run an application over its input to the end, and capture it; return it, and the capture."""

    def run(name, inputs, outputs=(), also=(), given=(), **more):
        made = App(cluster, name, prefix, tmp_path / "app", inputs=list(inputs), **more)
        topics = {made.topic(each): count for each, count in {**inputs, **dict(outputs)}.items()}
        request.addfinalizer(lambda: cluster.delete_all(cluster.topics().keys() & topics.keys()))
        cluster.create_all(topics)
        for seed, each in enumerate(inputs):
            if each == "asked":
                made.run()  # what is asked finds the joined table
            cluster.produce(made.topic(each), given or [*records(100, seed=seed, keys=20), *also])
        made.run()
        capture = tmp_path / "capture.json"
        run_kops("streams", "capture", "--out", capture, "--", *made.command).ok()
        return made, capture

    return run


def test_two_workers_run_a_program_with_windows_and_a_repartition(app, on_cluster, cluster, run_kops):
    made, capture = app("texts", {"in": 3}, outputs={"out": 3})
    stores = ("texts", "windows", "letters")
    before = {store: made.view(store) for store in stores}
    here = run_kops("state", "verify", capture, "-B", cluster.servers, "-o", "json").json
    code, out, err = ended(on_cluster("state", "verify", capture))
    there = [{**row, "last_proven": found["last_proven"]} for row, found in zip(json.loads(out), here, strict=True)]  # since the first one
    assert (code, there) == (0, here), err
    for store in stores:
        cluster.empty(made.topic(f"{store}-changelog"))
    code, out, err = ended(on_cluster("state", "rebuild", capture, "--yes"))
    assert code == 0, err
    assert json.loads(out)["status"] == "done"
    after = {store: made.view(store) for store in stores}
    before["windows"] = without_expired(before["windows"])
    assert after == before
    done = run_kops("state", "verify", capture, "-B", cluster.servers, "-o", "json")
    assert {row["store"]: sum(row[word] for word in DIFFERENCES) for row in done.json} == dict.fromkeys(stores, 0)


@pytest.mark.long
def test_files_that_a_command_names_are_the_same_on_workers(app, on_cluster, tmp_path):
    """At other paths there, they still count as the files of the capture."""
    file = tmp_path / "around.properties"
    file.write_text("min.amount=50\n")
    given = [Record(b"%d" % at, f"Bern {at} {FIRST_MS + at}".encode(), FIRST_MS + at) for at in range(100)]
    _, capture = app("around", {"in": 1}, main="Around", settings=[f"config.file={file}"], given=given)
    code, out, err = ended(on_cluster("state", "verify", capture))
    assert {row["verdict"] for row in json.loads(out)} == {"proven"}, out
    assert (code, "when the program was captured" in err + out) == (0, False), err


@pytest.mark.long
def test_two_workers_run_foreign_key_joins(app, on_cluster, cluster, run_kops):
    made, capture = app("rows", {"orders": 2, "customers": 2, "regions": 2, "asked": 2}, main="InARow")
    names = ("orders-store", "customers-store", "with-customers")
    before = {store: made.view(store) for store in names}
    for store in names:
        cluster.empty(made.topic(f"{store}-changelog"))
    chosen = [word for name in names for word in ("--store", name)]
    code, _, err = ended(on_cluster("state", "rebuild", capture, *chosen, "--yes", "--accept-doubtful"))
    assert code == 0, err
    after = {store: made.view(store) for store in names}
    assert {store: {key: entry.value for key, entry in view.items()} for store, view in after.items()} == {
        store: {key: entry.value for key, entry in view.items()} for store, view in before.items()
    }
    done = run_kops("state", "verify", capture, *chosen, "-B", cluster.servers, "-o", "json")
    assert {row["store"]: sum(row[word] for word in DIFFERENCES) for row in done.json} == dict.fromkeys(names, 0)


@pytest.mark.long
def test_a_worker_without_the_right_java_or_one_that_is_lost(app, on_cluster, cluster, tmp_path, python_without_kops):
    waits, host = tmp_path / "waits", socket.gethostname()
    waiting = Record(b"key-1", b"!wait:%s" % str(waits).encode(), FIRST_MS + 200_000)
    made, capture = app("texts", {"in": 2}, outputs={"out": 2}, also=[waiting])
    before = made.view("texts")
    cluster.empty(made.topic("texts-changelog"))
    rebuild, captured_with = ("state", "rebuild", "--store", "texts", "--yes"), json.loads(capture.read_text())
    java = int(captured_with["java"]["version"].partition(".")[0])

    python = tmp_path / "python-without-java"
    python.write_text(f'#!/bin/sh\nJAVA_HOME=/nowhere exec {python_without_kops} "$@"\n')
    python.chmod(0o755)
    code, _, err = ended(on_cluster(*rebuild, capture, **{"spark.pyspark.python": str(python)}))
    error = error_of(err)
    lacking = f"Spark's worker on {host} has no Java {java}, with which the program was captured"
    assert (code, error["code"]) == (2, "missing_requirement"), err
    assert error["message"] == f"{lacking}: JAVA_HOME is /nowhere, but there is no bin/java in it"

    newer = tmp_path / "newer.json"
    newer.write_text(json.dumps({**captured_with, "java": {**captured_with["java"], "version": "99.0.1"}}))
    code, _, err = ended(on_cluster(*rebuild, newer))
    error = error_of(err)
    assert (code, error["code"]) == (5, "refused"), err
    assert error["message"].startswith(f"Spark's worker on {host} has no Java 99, with which the program was captured: /")
    assert error["message"].endswith(f" is Java {java}")
    assert not cluster.read(made.topic("texts-changelog"))

    waits.touch()
    process = on_cluster(*rebuild, capture)
    wait_for("a task to wait", lambda: waits.read_text().isdigit() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    program = int(waits.read_text())
    for lost in machine_of(program):
        os.kill(lost, signal.SIGKILL)
    wait_for("its program to end", lambda: not Path(f"/proc/{program}").exists())
    wait_for("the rebuild to end", lambda: waits.unlink(missing_ok=True) or process.poll() is not None)  # the program may just write it
    code, _, err = ended(process)
    assert code == 0, err
    assert made.view("texts") == before
    written = [record.key for record in cluster.read(made.topic("texts-changelog"))]
    assert len(written) == len({*written})


def error_of(messages):
    """Return the one error that kops says at the end of its messages."""
    (error,) = json.loads(messages.splitlines()[-1])["errors"]
    return error


def machine_of(program):
    """Return the worker of Spark on whose machine a program runs, and its executor."""
    started = processes.descendants({os.getpid()})
    found = processes.named(started, "deploy.worker.Worker") | processes.named(started, "CoarseGrainedExecutorBackend")
    return [each for each in sorted(found) if program in processes.descendants({each})]


@pytest.mark.long
def test_a_spark_connect_server_runs_a_program(app, on_spark, connect_server, cluster):
    made, capture = app("texts", {"in": 2}, outputs={"out": 2})
    stores = ("texts", "windows", "letters")
    before = {store: made.view(store) for store in stores}
    for store in stores:
        cluster.empty(made.topic(f"{store}-changelog"))
    code, _, err = ended(on_spark(connect_server, "state", "rebuild", capture, "--yes"))
    assert code == 0, err
    before["windows"] = without_expired(before["windows"])
    assert {store: made.view(store) for store in stores} == before


@pytest.mark.long
def test_two_workers_start_from_archives_and_snapshots(app, on_cluster, cluster, run_kops, tmp_path):
    made, capture = app("texts", {"in": 2}, outputs={"out": 2})
    topic, stores, servers = made.topic("in"), ("texts", "letters"), ("-B", cluster.servers)
    chosen = [word for store in stores for word in ("--store", store)]
    ends = {number: high for number, (_, high) in cluster.ends(topic).items()}
    run_kops("replay", "archive", topic, "--to", tmp_path / "archive", *servers).ok()
    run_kops("state", "snapshot", made.application, "--to", tmp_path / "kept", *servers).ok()
    before = {store: made.view(store) for store in stores}
    cluster.trim(topic, {0: ends[0], 1: ends[1] // 2})
    for store in stores:
        cluster.empty(made.topic(f"{store}-changelog"))
    archive = ("--from-archive", tmp_path / "archive", "--accept-doubtful")
    code, _, err = ended(on_cluster("state", "rebuild", capture, *chosen, *archive, "--yes"))
    assert code == 0, err
    assert {store: made.view(store) for store in stores} == before

    cluster.produce(topic, records(200, keys=20)[100:])
    made.run()
    before = {store: made.view(store) for store in stores}
    cluster.trim(topic, ends)
    for store in stores:
        cluster.empty(made.topic(f"{store}-changelog"))
    snapshot = ("--from-snapshot", tmp_path / "kept", "--accept-doubtful")
    code, _, err = ended(on_cluster("state", "rebuild", capture, *chosen, *snapshot, "--yes"))
    assert code == 0, err
    assert {store: made.view(store) for store in stores} == before


@pytest.mark.long
def test_two_workers_judge_a_move_to_another_number_of_partitions(on_cluster, cluster, prefix, tmp_path, run_kops):
    app = made(cluster, prefix, tmp_path, count=100)
    move = ("--partitions", 5, "--grow-inputs", "--dry-run")
    code, out, err = ended(on_cluster("state", "repartition", captured(run_kops, app), *move))
    assert code == 0, err
    for store in STORES:
        assert f"{store}: of {len(app.view(store))} of {len(app.view(store))} keys the program computes the same" in out, out
