"""A rebuild whose input has values that are deep, or huge by their own word; and one that the brokers slow down."""

import json
import struct

import pytest

from support.programs import Program, Record
from support.staged_applications import Stage
from support.streams import compacted_view
from support.streams_cases import START

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

ONE = struct.pack(">q", 1)
NULLS = {"type": "array", "items": "null"}
NODE = {"type": "record", "name": "Node", "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "Node"]}]}
TEN_MILLION = b"\x80\xda\xc4\x09\x00"
"""That many items of an array, none of which takes a byte, and its end: zigzag as Avro has it."""
HOSTILE = {"huge": (NULLS, b"\x04\x00", TEN_MILLION), "deep": (NODE, b"\x02\x00", b"\x02\x02" * 50_000 + b"\x02\x00")}


@pytest.mark.long
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_value_is_one_undecodable_record(cluster, prefix, tmp_path, run_kops, registry, monkeypatch, kind):
    schema, good, bad = HOSTILE[kind]
    monkeypatch.setenv("KOPS_REGISTRY_URL", registry.url)
    stage = Stage(cluster, prefix, tmp_path, run_kops)
    front = b"\0" + registry.register(f"{prefix}-value", json.dumps(schema)).to_bytes(4, "big")
    values = {b"a": good, b"hostile": bad, b"b": good}
    program = stage.set(
        Program("count", "long", value="string"), [Record(key, front + value, START, (), 0) for key, value in values.items()]
    )
    body = json.loads(stage.file.read_text())
    (source,) = [store["from"] for store in body["stores"].values()]
    body["stores"][program.store]["where"] = "value is not null"  # or nothing would have to be read of it
    source["value"] = "avro"
    stage.file.write_text(json.dumps(body))

    error = stage.refused("1 record is not of the formats", f"{program.topic}:0 at offset 1 (value)")
    assert "--on-error skip" in error
    stage.rebuild("--on-error", "skip", "--damaged", program.store).ok()
    assert {key: entry.value for key, entry in compacted_view(cluster.read(program.changelog)).items()} == {b"a": ONE, b"b": ONE}


@pytest.mark.long
def test_a_quota_slows_a_rebuild_down_and_does_not_end_it(cluster, prefix, tmp_path, run_kops, unique):
    stage = Stage(cluster, prefix, tmp_path, run_kops)
    keys = [b"%04d" % at + b"k" * 500 for at in range(4000)]
    program = stage.set(Program("count", "long", value="bytes"), [Record(key, b"", START, (), at % 2) for at, key in enumerate(keys)])
    cluster.slow_down(slow := unique("slow"), 100_000)
    stage.rebuild("--damaged", program.store, "-X", f"client.id={slow}").ok()
    assert {key: entry.value for key, entry in compacted_view(cluster.read(program.changelog)).items()} == dict.fromkeys(keys, ONE)
