"""Whether the input lies where the state of its keys is."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from kops.core.models import Bounds, CommittedOffset, TopicPartition
from kops.core.murmur2 import partition_for
from kops.core.statefile import parse_state_file
from kops.core.streams.capture_file import read_capture
from kops.operations.state.facts import StoreFacts
from kops.operations.state.file_recipe import FileRecipe
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.judge.layout import layout
from kops.operations.state.own_code.program_recipe import ProgramRecipe
from kops.operations.state.own_code.start import ProgramRun
from kops.operations.state.own_code.stores import program_state_file

NAMES = [b"key-%d" % number for number in range(60)]
OWN = {"from": {"topic": "in", "key": "string", "value": "long"}, "aggregate": {"count": True}}
KEYED = {**OWN, "key_by": "value", "key_as": "long", "repartition": "app-keyed-repartition"}
FILE = parse_state_file("f", {"application": "app", "stores": {"own": OWN, "keyed": KEYED}})


def written(size):
    """Return a record of each key, where the default partitioner of a topic of that size puts it."""
    return [(name, partition_for(name, size)) for name in NAMES]


def by_another_partitioner(size):
    return [(name, (number * 7 + 3) % size) for number, name in enumerate(NAMES)]


def findings_of(records, size, *, committed=(), starts=0, capture=None, state_file=FILE, from_nothing=True):
    """Judge stores of which the topic has these records, as (key, partition), in their order."""
    logs = {number: [key for key, partition in records if partition == number] for number in range(size)}

    def read(ranges, isolation):
        for at, wanted in ranges.items():
            for offset in range(wanted.start, wanted.end):
                yield [SimpleNamespace(topic="in", partition=at.partition, offset=offset, key=logs[at.partition][offset])]

    def bounds(places, isolation):
        return {at: Bounds(0, len(logs[at.partition])) for at in places}

    services = SimpleNamespace(
        kafka=SimpleNamespace(offsets=SimpleNamespace(bounds=bounds), records=SimpleNamespace(read=read)),
    )
    places = {TopicPartition("in", number): Bounds(0, len(log)) for number, log in logs.items()}
    cut = InputOffsets(
        {at: bound.log_end_offset for at, bound in places.items()},
        {**dict.fromkeys(places, CommittedOffset(1)), **{TopicPartition(topic, 0): CommittedOffset(1) for topic in committed}},
    )
    facts = [StoreFacts(store, places, {}, {}, starts=dict.fromkeys(places, starts)) for store in state_file.stores]
    recipe = FileRecipe() if capture is None else ProgramRecipe(ProgramRun(capture))
    keyed = {store.name: recipe.keyed_topics(state_file, store) for store in state_file.stores}
    return layout(services, state_file, facts, cut, keyed=keyed, read=recipe.read_topics() if from_nothing else None)


@pytest.mark.parametrize(
    ("records", "size", "said"),
    [
        (written(12), 12, None),
        ([], 12, None),
        ([(None, 0), (None, 5)], 12, None),
        (written(4), 4, None),
        (written(4), 12, "among 4,"),
        ([*written(4), *written(12)], 12, "among 4,"),
        ([*written(4), *written(6), *written(12)], 12, "among 4 or 6,"),
        ([*written(1), *written(3)], 3, "among 1,"),
        (by_another_partitioner(12), 12, None),
        (by_another_partitioner(3), 3, None),
        ([(name, 0) for name in NAMES], 1, None),
    ],
)
def test_records_from_before_a_topic_grew_are_found(records, size, said):
    found = findings_of(records, size)
    assert set(found) == ({"own"} if said else set()), "by another key, records go through a topic that was recreated"
    assert said is None or said in found["own"][0].summary, found["own"][0].summary


def test_the_record_is_named():
    (found,) = findings_of([*written(4), *written(12)], 12)["own"]
    first = [key for key, at in written(4) if at == 0]
    number, name = next((at, key) for at, key in enumerate(first) if partition_for(key, 12) != 0)
    assert f"in:0 has a record at offset {number} whose key belongs to partition {partition_for(name, 12)} of 12" in found.summary


def test_what_lies_before_the_start_does_not_count():
    most = max(sum(at == number for _, at in written(4)) for number in range(4))
    assert not findings_of([*written(4), *written(12)], 12, starts=most)


def test_topics_that_the_program_does_not_read_are_found(monkeypatch):
    for name in ("require_agent", "require_runner"):
        monkeypatch.setattr(f"kops.operations.state.own_code.stores.{name}", lambda: None)
    path = Path(__file__).parents[3] / "core" / "streams" / "capture.json"
    capture = read_capture(json.loads(path.read_text(encoding="utf-8")), "c.json")
    file, _ = program_state_file(capture, "c.json", ["counts"])
    given = {"capture": capture, "state_file": file}
    its_own = ["clicks", "many-by-value-repartition", "many-of-older-repartition"]
    assert not findings_of([], 0, committed=its_own, **given)
    (found,) = findings_of([], 0, committed=[*its_own, "clicks-12"], **given)["counts"]
    assert found.summary.startswith("many has committed offsets of clicks-12, which the captured program does not read")
    assert not findings_of([], 0, committed=["clicks-12"], from_nothing=False, **given)
