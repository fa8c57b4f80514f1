"""A database's connectors on real workers: offsets moved back, a table that is gone, a record that no sink can read."""

import itertools
import json
import struct

import pytest

from support.programs import Record

pytestmark = pytest.mark.broker


def totals(**values):
    return [Record(item.encode(), struct.pack(">d", value), 1_700_000_000_000, (), 0) for item, value in values.items()]


def test_debezium_rereads_rows_retained_by_slot(shop, until):
    shop.apply(shop.source)
    until("the rows of the snapshot", lambda: len(shop.rows()) == 4)
    snapshot = sorted(shop.rows())
    assert snapshot == [(1, "laptop", 2000.0), (2, "laptop", 2000.0), (3, "laptop", 2000.0), (4, "mouse", 25.5)]

    def offset():
        rows = shop.kops("connect", "offsets", "show", shop.source, "-o", "json").ok().json
        return (rows[0]["partition"], rows[0]["offset"]) if rows else (None, {})

    def insert():
        number = next(numbers)
        shop.database.sql(f"insert into prices values ({number}, 'cable', {number})")
        until(f"row {number}", lambda: (number, "cable", float(number)) in shop.rows())
        until("its offset", lambda: offset()[1].get("messageType") == "INSERT" and offset()[1] not in seen)
        seen.append(offset()[1])

    def slot_begins_after(lsn):
        sql = f"select restart_lsn - '0/0' > {lsn} from pg_replication_slots where slot_name = '{shop.prefix}shop'"
        return shop.database.sql(sql) == [["t"]]

    def stopped_with_a_row_that_the_slot_has():
        insert()
        shop.kops("connect", "stop", shop.source, "--yes").ok()
        has = not slot_begins_after(seen[-2]["lsn"])  # every 15 s the server moves slots on
        if not has:
            shop.kops("connect", "resume", shop.source, "--yes").ok()
        return has

    def slot_has_moved_on():
        shop.database.sql("select pg_log_standby_snapshot()")  # what the server does every 15 s
        insert()
        return slot_begins_after(first["lsn"])

    seen, numbers = [], itertools.count(5)
    insert()
    until("a row that the slot has", stopped_with_a_row_that_the_slot_has)
    (first, second), rows = seen[-2:], shop.rows()
    place = ("--partition", json.dumps(offset()[0]))
    moved = shop.kops("connect", "offsets", "alter", shop.source, *place, "--offset", json.dumps(first), "--yes", "-o", "json").ok()
    assert moved.json["items"][0]["value"] == {"before": second, "after": first}
    shop.kops("connect", "resume", shop.source, "--yes").ok()
    until("the last row again", lambda: len(shop.rows()) == len(rows) + 1)
    last = max(rows)
    assert shop.rows().count(last) == 2

    until("the slot to move on", slot_has_moved_on)
    far = shop.kops("connect", "offsets", "alter", shop.source, *place, "--offset", json.dumps(first), "--yes")
    assert "a replication slot cannot rewind beyond what it has confirmed" in far.err
    assert f"{shop.source} task 0 FAILED: io.debezium.DebeziumException: The connector is trying to read" in far.err
    assert "but this is no longer available on the server." in far.err
    assert shop.kops("connect", "status", shop.source).code == 1
    undone = shop.kops("undo", "last", "--yes", "-o", "json").ok().json["items"][0]["value"]
    assert (undone["before"], offset()[1]) == (first, undone["after"])
    assert undone["after"]["lsn"] > first["lsn"]
    assert shop.kops("connect", "status", shop.source).code == 0

    before, rows = len(shop.rows()), shop.database.sql("select id from prices")
    shop.kops("connect", "offsets", "reset", shop.source, "--yes").ok()
    until("all rows again", lambda: len(shop.rows()) == before + len(rows))


def test_jdbc_sink_rewrites_rows_and_fails_without_table(shop, until):
    shop.apply(shop.sink)
    shop.cluster.produce(shop.totals, totals(pen=1.5, ink=2.5))
    until("the rows", lambda: shop.held() == [["ink", "2.5"], ["pen", "1.5"]])
    until("its offset", lambda: shop.lag() == 0)
    shop.database.sql("delete from totals")
    shop.kops("connect", "offsets", "alter", shop.sink, f"{shop.totals}:0=1", "--yes").ok()
    until("the second row again", lambda: shop.held() == [["ink", "2.5"]])
    shop.kops("connect", "offsets", "alter", shop.sink, f"{shop.totals}=start", "--yes").ok()
    until("both rows again", lambda: shop.held() == [["ink", "2.5"], ["pen", "1.5"]])

    shop.cluster.produce(shop.totals, [Record(b"bad", b"no double", 1_700_000_000_000, (), 0), *totals(cap=3.5)])
    until("the good row", lambda: ["cap", "3.5"] in shop.held())
    (dead,) = shop.kops("records", "dead-letters", "--connector", shop.sink, "--count", "-o", "json").ok().json
    assert (dead["count"], dead["stage"], dead["task"]) == (1, "VALUE_CONVERTER", 0)
    assert "SerializationException: Size of data received by Deserializer is not" in dead["cause"]

    shop.database.sql("alter table totals rename to elsewhere")
    shop.cluster.produce(shop.totals, totals(lid=4.5))
    until("the task to fail", lambda: shop.kops("connect", "status", shop.sink).code == 1)
    (status,) = shop.kops("connect", "status", shop.sink, "-o", "json").json
    assert "totals" in status["tasks"][0]["cause"]
    again = shop.kops("connect", "restart", shop.sink, "--failed", "--yes")
    assert (again.code, f"{shop.sink}: task 0 failed again" in again.out) == (1, True)
    shop.database.sql("alter table elsewhere rename to totals")
    shop.kops("connect", "restart", shop.sink, "--failed", "--yes").ok()
    until("the row", lambda: ["lid", "4.5"] in shop.held())
    assert shop.kops("connect", "status", shop.sink).code == 0

    shop.database.sql("alter table totals rename to elsewhere")
    shop.cluster.produce(shop.totals, totals(tin=5.5))
    until("the task to fail again", lambda: shop.kops("connect", "status", shop.sink).code == 1)
    fixed = shop.kops("connect", "alter", shop.sink, "--config", "collection.name.format=elsewhere", "--yes", "-o", "json").ok()
    assert fixed.json["items"][0]["value"] == {"state": "RUNNING", "tasks": ["RUNNING"]}  # the failure was from before
    assert "FAILED" not in fixed.err
    until("the last row", lambda: shop.database.sql("select total from elsewhere where item = 'tin'") == [["5.5"]])
