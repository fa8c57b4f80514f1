"""`kops state rebuild` against what the real Kafka Streams writes, for every aggregate and format.

All cases are stores of one application, so that kops runs once. A fifth of each partition lies after the committed offset and must not
count; every other changelog holds wrong and unknown keys before.
"""

import json
import os
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from kops.core.murmur2 import partition_for
from support import streams_cases
from support.programs import Record, merged
from support.skipped import LONG
from support.streams import Entry, compacted_view
from support.streams_cases import FURTHER, PARTITIONS, START, Case

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

ALL = [*streams_cases.own_key_cases(), *streams_cases.new_key_cases()]
CASES = [case for case in ALL if os.environ.get(LONG) or case.name not in FURTHER]
DAMAGED = frozenset(case.name for case in ALL[::2])
"""Whose changelogs hold wrong and unknown keys before."""
SOME = ("count-json", "by-item-sum", *(("concat", "table-string") if os.environ.get(LONG) else ()))
"""Stores that are verified before and after, and rebuilt twice."""
UNKNOWN = struct.pack(">q", 77)


@dataclass(frozen=True)
class Run:
    """What came out of the one rebuild.

    :param codes: exit codes of ``verify`` before the rebuild, and of ``rebuild``, of ``verify`` after it, and of a second rebuild
    :param grown: how many records the second rebuild wrote
    """

    codes: tuple[int, ...]
    messages: str
    expected: Mapping[str, dict[bytes, Entry]]
    actual: Mapping[str, dict[bytes, Entry]]
    grown: int


def cut(case: Case, partition: int) -> int:
    """Return the committed offset of a partition of the input."""
    return len(case.in_partition(partition)) * 4 // 5


def expected_view(oracle, case: Case) -> dict[bytes, Entry]:
    """Return what Kafka Streams holds after the records before the cut; each partition is a task of its own."""
    view: dict[bytes, Entry] = {}
    for partition in range(PARTITIONS):
        read = case.in_partition(partition)[: cut(case, partition)]
        for key, entry in compacted_view(oracle.run(case.program, read).changelog).items():
            assert key not in view
            view[key] = replace(entry, partition=partition_for(key, PARTITIONS) if case.program.key_by else partition)
    return view


def damage(expected: Mapping[bytes, Entry]) -> list[Record]:
    """Return records that make a changelog wrong: a value, a timestamp, an unknown key, and a key that is gone."""
    keys = list(expected)
    wrong = [Record(key, b"wrong", START, (), expected[key].partition) for key in keys[:2]]
    late = [Record(key, expected[key].value, expected[key].timestamp + 1, (), expected[key].partition) for key in keys[2:4]]
    gone = [Record(key, None, START, (), expected[key].partition) for key in keys[4:5]]
    return [*wrong, *late, *gone, Record(UNKNOWN, b"unknown", START, (), 1), Record(UNKNOWN + b"2", b"unknown", START, (("h", b"1"),), 2)]


@pytest.fixture(scope="module")
def rebuilt(oracle, cluster, run_kops_alone, tmp_path_factory):
    prefix = f"oracle-{uuid.uuid4().hex[:8]}"
    cases = [replace(case, program=replace(case.program, application=prefix, topic=f"{prefix}-{case.program.topic}")) for case in CASES]
    programs = [case.program for case in cases]
    cluster.create_all({program.topic: PARTITIONS for program in programs})
    cluster.create_all({program.changelog: PARTITIONS for program in programs}, {"cleanup.policy": "compact"})
    cluster.create_all({program.repartition: PARTITIONS for program in programs if program.repartition})
    expected = {case.name: expected_view(oracle, case) for case in cases}
    cluster.produce_all({case.program.topic: case.records for case in cases})
    cluster.produce_all({case.program.changelog: damage(expected[case.name]) for case in cases if case.name in DAMAGED})
    cluster.commit(prefix, {(case.program.topic, at): cut(case, at) for case in cases for at in range(PARTITIONS)})
    file = tmp_path_factory.mktemp("oracle") / "state.yaml"
    file.write_text(json.dumps(merged(programs)), encoding="utf-8")

    def kops(verb: str, *options: str):
        return run_kops_alone("state", verb, str(file), "-B", cluster.servers, "-o", "json", *options)

    damaged = [option for case in cases if case.name in DAMAGED for option in ("--damaged", case.program.store)]
    some = [option for name in SOME for option in ("--store", name)]
    outcomes = [kops("verify", *some), kops("rebuild", "--yes", *damaged), kops("verify", *some)]
    actual = {case.name: cluster.read(case.program.changelog) for case in cases}
    outcomes.append(kops("rebuild", "--yes", "--accept-doubtful", *some))
    again = sum(len(cluster.read(case.program.changelog)) for case in cases)
    messages = "\n".join(f"{outcome.code}\n{outcome.out}\n{outcome.err}" for outcome in outcomes)
    yield Run(
        tuple(outcome.code for outcome in outcomes),
        messages,
        expected,
        {name: compacted_view(records) for name, records in actual.items()},
        again - sum(map(len, actual.values())),
    )
    cluster.delete_all(cluster.topics(prefix))


@pytest.mark.parametrize("name", [pytest.param(case.name, marks=pytest.mark.long if case.name in FURTHER else ()) for case in ALL])
def test_the_rebuilt_changelog_is_what_kafka_streams_writes(rebuilt, name):
    assert rebuilt.actual[name] == rebuilt.expected[name]
    assert rebuilt.expected[name], "a case that proves nothing"


def test_verify_fails_before_and_passes_after_and_a_second_rebuild_writes_nothing(rebuilt):
    assert rebuilt.codes == (1, 0, 0, 0), rebuilt.messages[-3000:]
    assert rebuilt.grown == 0
