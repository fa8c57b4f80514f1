"""``kops connect list`` and ``status`` of many connectors, asked of a server that counts the requests."""

import json
import os
import subprocess
import sys

import pytest

from support.faulty_connect import Answer, expanded, faulty_worker
from support.patience import HANG_SECONDS

__all__ = ["faulty_worker"]
TRACE = """org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:636)
Caused by: java.sql.SQLException: cannot log in to jdbc:postgresql://db/shop?user=me&password=s3cret9
\t... 10 more
"""


@pytest.fixture
def ask(run_kops, monkeypatch):
    """Run kops connect against workers: ``ask(worker, "status")``."""

    def run(worker, *arguments):
        monkeypatch.setenv("KOPS_CONNECT_URLS", worker.url)
        return run_kops("connect", *arguments)  # no brokers: they are not asked

    return run


def test_list_of_two_hundred_connectors_is_one_request(faulty_worker, ask):
    many = {f"c{number:03}": expanded(f"c{number:03}", "RUNNING", "RUNNING") for number in range(200)}
    worker = faulty_worker(Answer(200, many))
    status = ask(worker, "status", "-o", "json").ok().json
    assert worker.asked == ["GET /connectors?expand=status&expand=info"]
    assert [one["name"] for one in status] == sorted(many)
    assert len(ask(worker, "list", "c1*", "-o", "name").ok().out.split()) == 100
    assert len(worker.asked) == 2
    assert "200 connectors: 200 RUNNING; 400 tasks: 400 RUNNING" in ask(worker, "status").ok().err


def test_status_shows_causes_without_secrets(faulty_worker, ask):
    failed = expanded("bad", "RUNNING", "FAILED", trace=TRACE, config={"connector.class": "a.B", "connection.password": "s3cret9"})
    worker = faulty_worker(Answer(200, {"bad": failed, "good": expanded("good", "RUNNING", kind="source")}))
    shown = ask(worker, "status")
    assert shown.code == 1
    assert "bad      1  FAILED   w:8083  java.sql.SQLException: cannot log in" in shown.out
    assert "2 connectors: 2 RUNNING; 3 tasks: 2 RUNNING, 1 FAILED" in shown.err
    whole = ask(worker, "status", "--failed", "--trace", "-o", "json")
    (body,) = whole.json
    assert [task["error"] for task in body["tasks"]] == [
        None,
        "org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.",
    ]
    assert body["tasks"][1]["trace"].startswith("org.apache.kafka.connect.errors.ConnectException")
    for said in (shown, whole, ask(worker, "status", "--trace"), ask(worker, "status", "-o", "csv")):
        assert "s3cret9" not in said.out + said.err
    assert ask(worker, "status", "good").code == 0


def test_watch_reports_changes(faulty_worker, ask):
    good, bad = expanded("c", "RUNNING"), expanded("c", "FAILED", trace=TRACE)
    page = Answer(502, b"<title>Bad Gateway</title>")
    worker = faulty_worker(Answer(200, {"c": good}), Answer(200, {"c": good}), page, Answer(200, {"c": bad}))
    watched = ask(worker, "status", "--watch", "--interval", "100ms", "--count", "4")
    assert watched.code == 1
    lines = [line.split("  ", 1)[1] for line in watched.out.splitlines()]
    assert lines[:2] == ["1 connector: 1 RUNNING; 1 task: 1 RUNNING", "c RUNNING on w:8083"]
    assert [line.split(":")[0] for line in lines[3:]] == ["c task 0 FAILED on w"]
    assert "Bad Gateway" in watched.err
    looks = ask(worker, "status", "--watch", "--interval", "100ms", "--count", "2", "-o", "json").out.splitlines()
    assert [json.loads(look)["connectors"][0]["tasks"][0]["state"] for look in looks] == ["FAILED", "FAILED"]


def test_unknown_name_is_rejected(faulty_worker, ask):
    worker = faulty_worker(Answer(200, {}))
    missing = ask(worker, "status", "nobody")
    assert (missing.code, "there is no connector nobody" in missing.err) == (1, True)
    assert "`kops connect list` shows what there is" in missing.err
    assert ask(worker, "list", "-o", "json").ok().json == []


def test_connector_names_are_completed(faulty_worker, monkeypatch):
    worker = faulty_worker(Answer(200, {name: expanded(name, "RUNNING") for name in ("orders-sink", "orders-source", "other")}))
    words = {
        "KOPS_COMPLETION_SECONDS": str(HANG_SECONDS),
        "_KOPS_COMPLETE": "bash_complete",
        "COMP_WORDS": "kops connect restart orders",
        "COMP_CWORD": "3",
    }
    environment = {**os.environ, **words, "KOPS_CONNECT_URLS": worker.url, "KOPS_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    done = subprocess.run([sys.executable, "-m", "kops"], env=environment, capture_output=True, text=True, timeout=HANG_SECONDS, check=True)
    assert done.stdout.split() == ["plain,orders-sink", "plain,orders-source"]


def test_workers_are_queried_separately(faulty_worker, run_kops, monkeypatch):
    about = {"version": "4.3.1", "commit": "c0ffee", "kafka_cluster_id": "id"}
    good, page = faulty_worker(Answer(200, about)), faulty_worker(Answer(502, b"<title>Bad Gateway</title>"))
    monkeypatch.setenv("KOPS_CONNECT_URLS", f"{good.url},{page.url},http://127.0.0.1:1")
    found = run_kops("connect", "workers", "-B", "127.0.0.1:1", "-o", "json")
    assert found.code == 1
    assert found.json[0] == {"url": good.url, **about, "problem": None}
    assert ["Bad Gateway" in found.json[1]["problem"], found.json[2]["problem"]] == [
        True,
        "no Connect worker answers at http://127.0.0.1:1",
    ]


def test_offsets_show_without_brokers(faulty_worker, ask, run_kops):
    place, at = {"kafka_topic": "orders", "kafka_partition": 0}, {"kafka_offset": 7}
    worker = faulty_worker(Answer(200, {"c": expanded("c", "RUNNING")}), Answer(200, {"offsets": [{"partition": place, "offset": at}]}))
    shown = ask(worker, "offsets", "show", "c")
    assert (shown.ok().out.split(), "without brokers" in shown.err) == (["CONNECTOR", "PARTITION", "OFFSET", "c", "orders:0", "7"], True)
    needed = run_kops("topics", "list")
    assert (needed.code, "no brokers are configured" in needed.err, "-B host:9092" in needed.err) == (2, True, True)
