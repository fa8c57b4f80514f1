"""`kops schemas` on a real registry (Apicurio, through Confluent's API), and Protobuf records."""

import json

import pytest
import requests
from confluent_kafka import Producer

from support.patience import HANG_SECONDS

pytestmark = pytest.mark.broker

CITY = {"type": "record", "name": "To", "fields": [{"name": "city", "type": "string"}]}
ORDER = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "int"}, {"name": "to", "type": CITY}]}
ITEM = {"name": "item", "type": "string"}
PROTO = """syntax = "proto3"; package shop; import "money.proto";
message Order { int64 id = 1; money.Amount price = 2; repeated Line lines = 3; message Line { string item = 1; } }
message Refund { sint64 cents = 1; }
"""
MONEY = 'syntax = "proto3"; package money; message Amount { double euros = 1; }'
KEYS = {
    "list": {"subject", "version", "id", "type", "compatibility", "compatibility_own", "references"},
    "show": {"subject", "version", "id", "type", "schema", "references", "versions", "compatibility", "compatibility_own"},
    "show --id": {"subject", "version", "id", "type", "schema", "references", "subjects"},
    "check": {"subject", "version", "id", "level", "compatible", "problems", "messages"},
    "register": {"version", "status", "items", "errors", "messages", "journal_id"},
}
"""The keys of the JSON of each command, which programs read."""


@pytest.fixture
def schemas(broker, registry, run_kops):
    """`kops schemas` in a context with the registry."""
    run_kops("context", "add", "here", "--bootstrap-servers", broker.bootstrap_servers, "--registry-url", registry.url).ok()
    return lambda *arguments: run_kops("schemas", *arguments, "-c", "here")


def with_fields(*more, city="string"):
    changed = json.loads(json.dumps(ORDER))
    changed["fields"][1]["type"]["fields"][0]["type"] = city
    return {**changed, "fields": [*changed["fields"], *more]}


def level(registry, subject, name):
    assert requests.put(f"{registry.url}/config/{subject}", json={"compatibility": name}, timeout=HANG_SECONDS).status_code == 200


def file(tmp_path, schema, name="order.avsc"):
    path = tmp_path / name
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema), encoding="utf-8")
    return path


def test_a_subject_from_its_first_version_to_undo(schemas, registry, run_kops, unique, tmp_path):
    subject = unique("subject")
    dry = schemas("register", subject, file(tmp_path, ORDER), "--dry-run", "-o", "json").ok().json
    assert (dry["items"][0]["action"], dry["items"][0]["before"]) == ("create", None)
    assert subject not in schemas("list", "-o", "name").ok().out
    first = schemas("register", subject, file(tmp_path, ORDER), "--yes", "-o", "json").ok()
    assert set(first.json) <= KEYS["register"]
    assert first.json["items"][0]["value"]["version"] == 1
    again = schemas("register", subject, file(tmp_path, ORDER), "--yes")
    assert (again.code, "already: version 1" in again.err) == (0, True)
    level(registry, subject, "FULL")

    bad = file(tmp_path, with_fields(ITEM, city="int"))
    checked = schemas("check", subject, bad, "-o", "json")
    assert (checked.code, set(checked.json[0])) == (1, KEYS["check"])
    assert checked.json[0]["problems"] == [
        "to.city: string is written, and int is read (read with the new schema)",
        "item: is read, was not written, and has no default (read with the new schema)",
        "to.city: int is written, and string is read (read with version 1)",
    ]
    refused = schemas("register", subject, bad, "--yes")
    assert (refused.code, "to.city: string is written" in refused.err) == (5, True)
    broken = schemas("check", subject, file(tmp_path, '{"type": "record"'))
    assert (broken.code, "no Avro schema that can be read" in broken.err) == (2, True)

    good = file(tmp_path, with_fields({**ITEM, "default": ""}))
    assert schemas("check", subject, good).ok().out.split()[-2:] == ["FULL", "yes"]
    schemas("register", subject, good, "--plan-out", tmp_path / "plan").ok()
    second = schemas("register", subject, good, "--yes", "-o", "json").ok().json["items"][0]["value"]
    moved = run_kops("apply", tmp_path / "plan", "--yes", "-c", "here")
    assert (moved.code, "changed since the plan was made" in moved.err) == (5, True)
    shown = schemas("show", subject, "-o", "json").ok().json
    assert (set(shown), shown["versions"], shown["id"], shown["compatibility"]) == (KEYS["show"], [1, 2], second["id"], "FULL")
    by_id = schemas("show", "--id", second["id"], "-o", "json").ok().json
    assert (set(by_id), by_id["subjects"]) == (KEYS["show --id"], [{"subject": subject, "version": 2}])
    assert json.loads(schemas("show", subject, "--version", "1", "--raw").ok().out) == ORDER
    listed = schemas("list", subject, "-o", "json").ok().json
    assert [(set(row), row["version"], row["type"]) for row in listed] == [(KEYS["list"], 2, "avro")]

    run_kops("undo", "last", "--confirm", subject, "-c", "here").ok()
    assert requests.get(f"{registry.url}/subjects/{subject}/versions", timeout=HANG_SECONDS).json() == [1]
    assert schemas("show", "--id", second["id"], "-o", "json").ok().json["id"] == second["id"]  # soft: records may have it
    run_kops("undo", "last", "--yes", "-c", "here").ok()
    assert schemas("show", subject, "-o", "json").ok().json["id"] == second["id"]


def test_a_subject_that_does_not_exist_is_not_found(schemas, run_kops, broker, unique, tmp_path):
    missing = schemas("show", unique("none"))
    assert (missing.code, "has no subject" in missing.err) == (1, True)
    assert schemas("show", "--id", "999999").code == 1
    assert schemas("list", unique("none")).code == 1
    assert schemas("check", unique("new"), file(tmp_path, ORDER)).ok().err.strip().endswith("any schema is compatible")
    unknown = schemas("register", unique("new"), file(tmp_path, ORDER), "--reference", f"a.B={unique('none')}:1")
    assert (unknown.code, "a reference leads nowhere" in unknown.err) == (2, True)
    without = run_kops("schemas", "list", "-B", broker.bootstrap_servers)
    assert (without.code, "there is no schema registry" in without.err) == (2, True)


def test_protobuf_with_an_import_is_registered(schemas, registry, run_kops, broker, topic, unique, tmp_path):
    money, order, name = unique("money"), unique("order"), topic()
    schemas("register", money, file(tmp_path, MONEY, "money.proto"), "--yes").ok()
    done = schemas("register", order, file(tmp_path, PROTO, "order.proto"), "--reference", f"money.proto={money}:1", "--yes", "-o", "json")
    number = done.ok().json["items"][0]["value"]["id"]
    front = b"\0" + number.to_bytes(4, "big")
    values = [
        front + b"\0" + b"\x08\x07" + b"\x12\x09\x09\x00\x00\x00\x00\x00\x00\xf8\x3f" + b"\x1a\x03\x0a\x01x",  # Order
        front + b"\x02\x02" + b"\x08\x03",  # Refund, the second message
        front + b"\x04\x00\x00" + b"\x0a\x01y",  # Order.Line
        front + b"\x02\x08",  # a message that there is not
    ]
    producer = Producer(broker.client)
    for value in values:
        producer.produce(name, value, b"k", 0)
    assert producer.flush(HANG_SECONDS) == 0
    found = run_kops("records", "consume", name, "0..3", "--value", "protobuf", "-o", "json", "-c", "here").ok()
    assert [json.loads(line)["value"] for line in found.out.splitlines()] == [
        {"id": 7, "price": {"euros": 1.5}, "lines": [{"item": "x"}]},
        {"cents": -2},
        {"item": "y"},
    ]
    chosen = run_kops(
        "records", "consume", name, "0..3", "--value", "protobuf", "--filter", "value.price.euros>1", "-o", "name", "-c", "here"
    )
    assert chosen.ok().out == "k\n"
    wrong = run_kops("records", "consume", name, "3..", "--value", "protobuf", "-c", "here")
    assert (wrong.code, f"the value of {name}:0 at offset 3 is not protobuf: schema {number}" in wrong.err) == (1, True)


def live(registry, subject):
    answer = requests.get(f"{registry.url}/subjects/{subject}/versions", timeout=HANG_SECONDS)
    return answer.json() if answer.status_code == 200 else []


def deleted_too(registry, subject):
    answer = requests.get(f"{registry.url}/subjects/{subject}/versions?deleted=true", timeout=HANG_SECONDS)
    return answer.json() if answer.status_code == 200 else []


def test_versions_are_deleted_softly_and_registered_again_or_for_good(schemas, registry, run_kops, unique, tmp_path):
    subject = unique("subject")
    whole = {**with_fields({**ITEM, "default": ""}), "name": subject.replace("-", "_")}
    one, two = json.dumps({**whole, "fields": whole["fields"][:2]}), json.dumps(whole)
    ids = [registry.register(subject, text) for text in (one, two)]
    planned = schemas("delete", subject, "--dry-run", "-o", "json").ok().json
    assert [item["before"]["id"] for item in planned["items"]] == ids
    assert "any schema is compatible next" in planned["notes"][0]
    assert live(registry, subject) == [1, 2]
    schemas("delete", subject, "--plan-out", tmp_path / "plan").ok()
    schemas("delete", subject, "--version", "2", "--confirm", subject).ok()
    assert live(registry, subject) == [1]
    moved = run_kops("apply", tmp_path / "plan", "--confirm", subject, "-c", "here")
    assert (moved.code, "changed since the plan was made" in moved.err) == (5, True)
    run_kops("undo", "last", "--yes", "-c", "here").ok()
    assert len(live(registry, subject)) == 2
    assert schemas("show", subject, "-o", "json").ok().json["id"] == ids[1]

    schemas("delete", subject, "--confirm", subject).ok()
    assert live(registry, subject) == []
    done = run_kops("undo", "last", "--yes", "-c", "here").ok()
    assert [json.loads(schemas("show", subject, "--version", each, "--raw").ok().out) for each in live(registry, subject)] == [
        json.loads(one),
        whole,
    ], done.out
    hard = schemas("delete", subject, "--hard", "--confirm", subject).ok()
    assert "warning: this cannot be undone" in hard.err
    assert "cannot be read after this" in hard.err
    assert deleted_too(registry, subject) == []
    assert (run_kops("undo", "last", "--yes", "-c", "here").code, schemas("delete", subject, "--confirm", subject).code) == (5, 1)


def test_what_others_refer_to_is_not_deleted(schemas, registry, unique):
    used, user = unique("used"), unique("user")
    registry.register(used, json.dumps(CITY))
    text = json.dumps({"type": "record", "name": "From", "fields": [{"name": "to", "type": "To"}]})
    number = registry.register(user, text, references=[{"name": "To", "subject": used, "version": 1}])
    refused = schemas("delete", used, "--confirm", used)
    assert (refused.code, f"is referred to by schema {number}" in refused.err) == (5, True)
    assert live(registry, used) == [1]
    shared = unique("shared")
    registry.register(shared, json.dumps(CITY))
    warned = schemas("delete", shared, "--hard", "--dry-run").ok().err
    assert f"stays readable: {used} version 1 has it too" in warned


def test_the_level_of_a_subject_is_set_removed_and_undone(schemas, registry, run_kops, unique):
    subject = unique("subject")
    registry.register(subject, json.dumps(ORDER))

    def now():
        return requests.get(f"{registry.url}/config/{subject}", timeout=HANG_SECONDS).json()["compatibilityLevel"]

    common = now()
    schemas("config", subject, "--compatibility", common, "--yes").ok()
    assert now() == common
    schemas("config", subject, "--compatibility", "full", "--yes").ok()
    assert now() == "FULL"
    row = schemas("config", subject, "-o", "json").ok().json[1]
    assert (row["subject"], row["compatibility"], row["compatibility_own"], row["mode"]) == (subject, "FULL", True, None)
    schemas("config", subject, "--remove", "compatibility", "--yes").ok()
    assert now() == common
    assert schemas("config", subject, "-o", "json").ok().json[1]["compatibility_own"] is False
    run_kops("undo", "last", "--yes", "-c", "here").ok()
    assert now() == "FULL"
    for bad, said in {
        ("--mode", "SLOW"): "SLOW",
        ("--compatibility", "FULL", "--remove", "compatibility"): "both set and removed",
        ("--global", "--mode", "READONLY"): "pass --global",
    }.items():
        refused = schemas("config", subject, *bad, "--yes")
        assert (refused.code, said in refused.err) == (2, True), refused.err
    without = schemas("config", subject, "--mode", "READONLY", "--yes")
    assert (without.code, now()) == (1, "FULL")  # this registry has no modes
