"""``examples/poison-pill``: what stopped a consumer is found, stepped over, repaired and sent back from the dead letters, each once."""

import contextlib
import subprocess
import sys
from collections import Counter

import pytest

from support.examples import EXAMPLES, with_names
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.spark]

START = 1_760_000_000_000
PILL, JUNK = b"{'customer': 'grace', 'amount': 12}", b"\x00\xff no payment"
PEOPLE = ("ada", "ben", "cyd")
REPAIR = ("--value", "string", "--skip-undecodable", "--where", "value like '{%'", "--set", "value=replace(value, char(39), char(34))")


def payments():
    """Twelve good ones in three partitions, and two that nobody can read after the second of partition 1."""
    good = [
        Record(PEOPLE[n % 3].encode(), b'{"customer": "%s", "amount": %d}' % (PEOPLE[n % 3].encode(), n), START + n, (), n % 3)
        for n in range(12)
    ]
    bad = [Record(b"grace", value, START + 12, (), 1) for value in (PILL, JUNK)]
    return [*good[:6], *bad, *good[6:]]


@contextlib.contextmanager
def billing(servers, prefix, folder):
    """Run the consumer; it appends to its ledger."""
    with (folder / "ledger").open("ab") as ledger, (folder / "billing.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, EXAMPLES / "poison-pill" / "billing.py", servers, prefix], stdout=ledger, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(HANG_SECONDS)


def test_from_the_alarm_to_the_last_dead_letter(run_kops, connect_workers, connectors, cluster, unique, tmp_path, monkeypatch):
    monkeypatch.setenv("KOPS_CONNECT_URLS", ",".join(connect_workers.urls))
    prefix = f"{unique()}-"
    topic, queue, group, sink = (f"{prefix}{name}" for name in ("payments", "payments-dlq", "billing", "warehouse"))
    connectors.made.append(sink)
    names = {"name: payments": f"name: {prefix}payments"}
    topics = with_names("poison-pill", "topics.yaml", tmp_path, names)
    names = {"/tmp/poison-pill": str(tmp_path), "payments": f"{prefix}payments", "name: warehouse": f"name: {sink}"}
    warehouse = with_names("poison-pill", "warehouse.yaml", tmp_path, names)

    def kops(*arguments):
        return run_kops(*arguments, "-B", cluster.servers)

    def ledger():
        return (tmp_path / "ledger").read_text().split("\n")[:-1]

    kops("topics", "apply", topics, "--yes").ok()
    kops("connect", "apply", warehouse, "--yes").ok()
    try:
        cluster.produce(topic, payments())
        for _restarted in range(2):
            with billing(cluster.servers, prefix, tmp_path) as process:
                assert process.wait(HANG_SECONDS) == 1
        assert "JSONDecodeError" in (tmp_path / "billing.log").read_text()

        found = kops("diagnose", group, "--sample", "0s", "-o", "json")
        assert (found.code, "no_members" in {finding["check"] for finding in found.json["findings"]}) == (1, True), found.json
        (stuck,) = [row for row in kops("groups", "lag", group, "-o", "json").ok().json if row["partition"] == 1]
        assert (stuck["committed"], stuck["lag"]) == (2, 4)
        peeked = kops("records", "peek", group, "--value", "json", "-o", "json").ok()
        (row,) = [row for row in peeked.json if row["position"] == "next" and row["partition"] == 1]
        assert (row["offset"], f"{topic}:1" in peeked.err) == (2, True)
        kops("offsets", "seek", group, f"{topic}:1=skip:2", "--yes").ok()
        with billing(cluster.servers, prefix, tmp_path):
            good = Counter(f"{PEOPLE[n % 3]} {n}" for n in range(12))
            wait_for("the good payments to be booked", lambda: Counter(ledger()) == good)
            wait_for("the dead letters", lambda: len(cluster.read(queue)) == 2)
            counted = kops("records", "dead-letters", "--connector", sink, "--count", "-o", "json").ok().json
            assert [(row["count"], row["stage"]) for row in counted] == [(1, "VALUE_CONVERTER")] * 2

            done = kops("replay", "redrive", queue, *REPAIR, "--to-topics", topic, "--yes", "-o", "json").ok().json
            assert [item["value"]["records"] for item in done["items"]] == [1]
            repaired = good + Counter(["grace 12"])
            wait_for("the repaired payment", lambda: Counter(ledger()) == repaired)
            written = tmp_path / "warehouse.txt"
            wait_for("the warehouse", lambda: len(written.read_text().splitlines()) == 13)
            assert sum("customer=grace" in line for line in written.read_text().splitlines()) == 1
            again = kops("replay", "redrive", queue, *REPAIR, "--to-topics", topic, "--yes", "-o", "json").ok().json
            assert {item["status"] for item in again["items"]} == {"unchanged"}
            assert kops("groups", "lag", group).code == 0
        assert (Counter(ledger()), len(cluster.read(queue))) == (repaired, 2)
    finally:
        connect_workers.ask("DELETE", f"/connectors/{sink}")
        cluster.delete_all(cluster.topics(prefix))
        kops("groups", "delete", group, "--confirm", group)
