"""Drafts of state files from what a captured program says of itself."""

import copy
import json
from pathlib import Path

import pytest
import yaml

from kops.core.records.format_guess import FormatGuess
from kops.core.statefile import parse_state_file
from kops.core.statefile.draft import Facts, StoreFacts, TopicFacts
from kops.core.statefile.draft_program import with_program
from kops.core.statefile.draft_stores import drafted
from kops.core.streams.capture_file import read_capture
from kops.core.streams.topology import parse_topology
from kops.core.streams.topology_trace import traces

CAPTURED = json.loads((Path(__file__).parents[1] / "streams" / "capture.json").read_text(encoding="utf-8"))
"""Of a program with stores of every kind, on 4.3.1."""
DRAFTED = ["counts", "lengths", "of-users", "regions-STATE-STORE-0000000024", "sessions", "users-store", "windows"]


@pytest.fixture
def body():
    found = copy.deepcopy(CAPTURED)
    found["config"]["effective"] |= {
        "default.key.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
        "default.value.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
        "default.timestamp.extractor": "org.apache.kafka.streams.processor.FailOnInvalidTimestamp",
        "processing.guarantee": "at_least_once",
    }
    found["config"]["main_consumer"] = {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    return found


def of(items, name):
    return next(item for item in items if item["name"] == name)


def draft_of(body, facts=None):
    capture = read_capture(body, "c.json")
    return drafted("many", traces(parse_topology(capture.description)), [], with_program(facts or Facts({}, {}), capture))


def file_of(draft):
    return yaml.safe_load(draft.text())


def todo(draft, path):
    return dict(draft.open_fields)[path]


def test_what_the_program_answers_is_not_open(body):
    draft = draft_of(body)
    found = file_of(draft)
    assert list(found["stores"]) == DRAFTED
    assert found["streams"] == {"version": "4.3.1", "guarantee": "at_least_once", "isolation": "read_committed"}
    clicks = {"topic": "clicks", "key": "string", "value": "string", "timestamp": "TODO", "start": "latest"}
    assert found["stores"]["counts"] == {"from": clicks, "aggregate": {"count": True}}
    assert found["stores"]["windows"] == {
        "type": "window",
        "from": clicks,
        "key_by": "TODO",
        "key_as": "string",
        "repartition": "many-by-value-repartition",
        "window": {"size": "5m", "grace": "1m", "retention": "6m"},
        "suppress": "final-store",
        "aggregate": {"count": True},
    }
    assert found["stores"]["sessions"]["window"] == {"gap": "30m", "grace": "2m", "retention": "32m"}
    assert found["stores"]["lengths"]["partitioner"] == "custom"
    assert found["stores"]["of-users"]["join"]["type"] == "inner"
    assert found["stores"]["of-users"]["join"]["table"] == "regions-STATE-STORE-0000000024"
    assert draft.notes == ()


def test_what_the_program_does_not_answer_names_its_code(body):
    draft = draft_of(body)
    assert todo(draft, "stores.lengths.aggregate").startswith("what a lambda of ManyStores computes, which only the code says: ")
    assert todo(draft, "stores.counts.from.timestamp").startswith("Spark SQL of what ManyStores$ByOffset gives")


def test_stores_that_no_state_file_describes_are_left_out_with_the_reason(body):
    skipped = draft_of(body).skipped
    assert "only the newest 100 keys" in skipped["seen"]
    assert "its logging is disabled" in skipped["recent"]
    assert "holds back updates" in skipped["final-store"]
    assert "stream-stream join" in skipped["pairs-left-shared-join-store"]
    assert set(skipped) | set(DRAFTED) == {store["name"] for store in body["stores"]}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "window"}, "windows without timestamps"),
        ({"kind": "buffer"}, "a buffer that Kafka Streams keeps for itself"),
        ({"kind": None, "builder": "com.acme.Ring"}, "another kind, made by com.acme.Ring"),
        ({"kind": None, "builder": None}, "another kind, made by a builder that is not known"),
        ({"headers": True}, "keeps the headers of records"),
    ],
)
def test_further_reasons(body, change, reason):
    of(body["stores"], "counts").update(change)
    assert reason in draft_of(body).skipped["counts"]


def test_the_store_of_a_processor_is_plain(body):
    del of(body["stores"], "seen")["capacity"]
    draft = draft_of(body)
    found = file_of(draft)["stores"]["seen"]
    assert (found["type"], found["from"]["topic"], found["aggregate"]) == ("plain", "orders", "TODO")
    assert todo(draft, "stores.seen.aggregate").startswith("what ManyStores$Dedup computes")


def test_windows_behind_a_partitioner_of_the_program_are_left_out(body):
    of(body["stores"], "lengths").update(kind="timestamped-window")
    assert "ManyStores$First places its keys" in draft_of(body).skipped["lengths"]


@pytest.mark.parametrize(
    ("windows", "type_", "expected"),
    [
        (
            {"class": "TimeWindows", "size_ms": 10_000, "advance_ms": 5_000, "grace_ms": 0},
            "window",
            {"size": "10s", "advance": "5s", "grace": "0ms"},
        ),
        ({"class": "SlidingWindows", "difference_ms": 10_000, "grace_ms": 5}, "sliding-window", {"difference": "10s", "grace": "5ms"}),
        ({"class": "SessionWindows", "gap_ms": 10_000, "grace_ms": 0}, "session", {"gap": "10s", "grace": "0ms"}),
    ],
)
def test_windows(body, windows, type_, expected):
    windows["class"] = f"org.apache.kafka.streams.kstream.{windows['class']}"
    of(body["nodes"], "KSTREAM-AGGREGATE-0000000003").update(windows=[windows], emit="ON_WINDOW_CLOSE")
    of(body["stores"], "windows")["kind"] = "session" if type_ == "session" else "timestamped-window"
    found = file_of(draft_of(body))["stores"]["windows"]
    assert (found["type"], found["window"], found["emit"]) == (type_, {**expected, "retention": "6m"}, "on-close")


def test_windows_of_the_programs_own_class_stay_open_but_for_their_retention(body):
    of(body["nodes"], "KSTREAM-AGGREGATE-0000000003")["windows"] = [{"class": "com.acme.Days", "grace_ms": 0}]
    found = file_of(draft_of(body))["stores"]["windows"]
    assert found["window"] == {"size": "TODO", "grace": "TODO", "retention": "6m"}


@pytest.mark.parametrize(("store", "before"), [("counts", "KeyValueToTimestampedKeyValue"), ("windows", "WindowToTimestampedWindow")])
def test_stores_that_keep_no_timestamps(body, store, before):
    layers = of(body["stores"], store)["layers"]
    layers.insert(-1, f"org.apache.kafka.streams.state.internals.{before}ByteStoreAdapter")
    draft = draft_of(body)
    said = {name for name, found in file_of(draft)["stores"].items() if found.get("timestamped") is False}
    assert said == {store}
    assert "its supplier is of stores without timestamps" in draft.text()


def test_versioned_stores(body):
    of(body["stores"], "users-store").update(kind="versioned", history_retention_ms=3_600_000)
    found = file_of(draft_of(body))["stores"]["users-store"]
    assert (found["type"], found["history_retention"]) == ("versioned", "1h")
    assert "timestamp" not in found["from"]


def test_a_topic_that_is_its_own_changelog(body):
    of(body["stores"], "users-store")["changelog"] = "users"
    part = next(part for part in body["subtopologies"] if any(each["name"] == "many-users-store-changelog" for each in part["changelogs"]))
    part["changelogs"].append({"name": "users", "is_source_topic": True, "settings": {}})
    body["config"]["main_consumer"]["auto.offset.reset"] = "latest"
    found = file_of(draft_of(body))
    assert found["streams"]["topology_optimization"] == "all"
    assert "start" not in found["stores"]["users-store"]["from"]
    assert found["stores"]["regions-STATE-STORE-0000000024"]["from"]["start"] == "latest"


@pytest.mark.parametrize(
    ("policy", "start"),
    [
        (None, None),
        ("earliest", None),
        ("by_duration:PT1H", "TODO"),
        ("none", "TODO"),
    ],
)
def test_start_policies(body, policy, start):
    source = next(node for node in body["nodes"] if node.get("topics") == ["views"])
    source["reset"] = {"views": policy}
    draft = draft_of(body)
    assert file_of(draft)["stores"]["lengths"]["from"].get("start") == start
    assert start is None or f"its start policy is {policy}" in todo(draft, "stores.lengths.from.start")


def test_the_wall_clock_as_extractor(body):
    body["config"]["effective"]["default.timestamp.extractor"] = "org.apache.kafka.streams.processor.WallclockTimestampExtractor"
    assert file_of(draft_of(body))["stores"]["lengths"]["from"]["timestamp"] == "wall-clock"


@pytest.mark.parametrize(
    ("serde", "sampled", "expected"),
    [
        ("org.apache.kafka.common.serialization.LongDeserializer", FormatGuess("double", "8 bytes"), "long"),
        ("org.apache.kafka.common.serialization.ByteBufferDeserializer", FormatGuess("string", "text"), "bytes"),
        ("org.apache.kafka.common.serialization.StringDeserializer", FormatGuess("json", "objects", "a int"), "string"),
        ("io.confluent.kafka.streams.serdes.avro.SpecificAvroDeserializer", FormatGuess(None, "no record"), "avro"),
        ("io.confluent.kafka.serializers.json.KafkaJsonSchemaDeserializer", FormatGuess(None, "no record"), "json-schema"),
        ("com.acme.Mine", FormatGuess("json", "objects", "a int"), {"format": "json", "schema": "a int"}),
        ("com.acme.Mine", FormatGuess(None, "no record"), "TODO"),
    ],
)
def test_formats(body, serde, sampled, expected):
    source = next(node for node in body["nodes"] if node.get("topics") == ["views"])
    source["value_deserializer"] = {"class": serde}
    draft = draft_of(body, Facts({}, {"views": TopicFacts(value=sampled)}))
    assert file_of(draft)["stores"]["lengths"]["from"]["value"] == expected
    if expected == "TODO":
        assert todo(draft, "stores.lengths.from.value") == "its format: no record; the program has com.acme.Mine"
    if sampled.name == "json" and expected == "string":
        assert "{format: json, schema: 'a int'}" in draft.text().replace("\n      # ", " ")


def test_a_default_serde_that_is_not_known(body):
    body["config"]["effective"]["default.value.serde"] = None
    assert file_of(draft_of(body))["stores"]["lengths"]["from"]["value"] == "TODO"


def test_settings_that_are_not_the_usual_ones(body):
    body["library"]["streams"] = None
    body["config"]["given"]["statestore.cache.max.bytes"] = "0"
    body["config"]["effective"]["processing.guarantee"] = "exactly_once_beta"
    assert file_of(draft_of(body))["streams"] == {"version": "TODO", "guarantee": "exactly_once_v2", "cache": False}
    del body["config"]["effective"]["processing.guarantee"]
    assert file_of(draft_of(body))["streams"]["guarantee"] == "TODO"


@pytest.mark.parametrize(("name", "kind"), [("KTableKTableOuterJoin$P", "outer"), ("KTableKTableLeftJoin$P", "left"), ("Other", "TODO")])
def test_joins_of_tables(body, name, kind):
    node = of(body["nodes"], "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-0000000038")
    node.update(left_join=None, processor=f"org.apache.kafka.streams.kstream.internals.{name}")
    assert file_of(draft_of(body))["stores"]["of-users"]["join"]["type"] == kind
    node["left_join"] = True
    assert file_of(draft_of(body))["stores"]["of-users"]["join"]["type"] == "left"


def test_a_filled_in_draft_is_a_state_file(body):
    found = file_of(draft_of(body, Facts({"windows": StoreFacts(changelog=True, step_ms=7)}, {})))
    for store in found["stores"].values():
        store["from"].pop("timestamp", None)
    answers = {"on": "left", "value": "left"}
    found["stores"]["of-users"]["join"] |= answers
    found["stores"]["windows"]["key_by"] = "value"
    found["stores"]["lengths"]["aggregate"] = {"sum": "length(value)", "as": "long"}
    found["stores"]["sessions"]["aggregate"] = {"last": "value", "as": "string"}
    stores = {store.name: store for store in parse_state_file("state.yaml", found).stores}
    assert list(stores) == DRAFTED
    assert stores["windows"].window.retention_ms == 360_000
