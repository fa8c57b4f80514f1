"""Keys in doubt are rebuilt when that is accepted, a state up to other positions too, and undone; the expected values are Kafka Streams'.

The applications never run: their topics and commits are set, and ``TopologyTestDriver`` is given what counts.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from support.json_keys import keys_of
from support.programs import KeyBy, Program, Record, Window
from support.staged_applications import COUNT, INPUT, Stage
from support.streams import compacted_view
from support.streams_cases import START

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

PINNED: dict[str, list[str]] = yaml.safe_load((Path(__file__).parent / "json_keys.yaml").read_text(encoding="utf-8"))
OF_THE_APPLICATION = r"^(committed|inputs|state_file)\..*"
"""What is inside is named as its topics and stores are, or is a state file."""
WINDOWS = replace(COUNT, window=Window("window", 10_000, retention=86_400_000))
LAST_PRICE = Program("last", "double", field="price", schema="item string, price double", key_by=KeyBy("string", "item"))


@pytest.fixture
def stage(cluster, prefix, tmp_path, run_kops):
    return Stage(cluster, prefix, tmp_path, run_kops)


def of(view):
    """Return value and time of each key."""
    return {key: (entry.value, entry.timestamp) for key, entry in view.items()}


def counted(oracle, records) -> dict[bytes, tuple[bytes, int]]:
    """Return what Kafka Streams counts of some records, wherever they lie: each key is in one partition."""
    return of(compacted_view(oracle.run(COUNT, records).changelog))


def test_what_retention_has_left_is_never_rebuilt(stage, cluster):
    program = stage.set()
    cluster.trim(program.topic, {0: 3, 1: 1})
    gone = f"store totals is impossible: older records of the input are gone: {program.topic}:0 at offset 3, {program.topic}:1 at offset 1"
    for options in ((), ("--accept-doubtful",), ("--accept-doubtful", "--damaged", "totals")):
        assert "--accept-doubtful" not in stage.refused(gone, options=options)


def test_windows_of_which_all_input_is_gone_are_never_removed(stage, cluster, oracle):
    """Those of the other partition are as computed: only what the changelog has beyond them is left to judge."""
    program = stage.set(WINDOWS)
    cluster.recreate(program.changelog)
    for number in (0, 1):
        read = [record for record in INPUT if record.partition == number]
        held = oracle.run(WINDOWS, read).changelog
        cluster.produce(program.changelog, [replace(record, partition=number) for record in held])
    stage.run_kops("state", "verify", str(stage.file), "-B", cluster.servers).ok()
    cluster.trim(program.topic, {1: cluster.ends(program.topic)[1][1]})
    for options in ((), ("--accept-doubtful",)):
        stage.refused("store totals is impossible", "older records of the input are gone", options=options)


def test_an_order_that_nothing_holds_is_rebuilt_when_that_is_accepted(stage, cluster):
    records = [Record(b"k", b'{"item":"i%d","price":%d.5}' % (at % 2, at), START + at, (), at // 2 % 2) for at in range(8)]
    program = stage.set(LAST_PRICE, records)
    assert "store totals is doubtful" in stage.rebuild().err
    stage.rebuild("--accept-doubtful").ok()
    found = compacted_view(cluster.read(program.changelog))
    newest = {key: max(r.timestamp for r in records if b'"%s"' % key in r.value) for key in (b"i0", b"i1")}
    assert {key: entry.timestamp for key, entry in found.items() if key != b"old"} == newest


def test_a_rebuild_up_to_a_time_and_up_to_the_end_moves_the_application(stage, cluster, oracle):
    program = stage.set()
    committed = cluster.committed(program.application)
    stage.rebuild("--at", f"@{START + 6}").ok()
    before = [record for record in INPUT if record.timestamp < START + 6]
    assert of(compacted_view(cluster.read(program.changelog))) == counted(oracle, before)
    there = {(program.topic, number): sum(record.partition == number for record in before) for number in (0, 1)}
    assert cluster.committed(program.application) == there
    stage.rebuild("--at", "end").ok()
    assert of(compacted_view(cluster.read(program.changelog))) == counted(oracle, INPUT)
    assert cluster.committed(program.application) == committed


def test_rebuild_is_undone(stage, cluster, oracle):
    program = stage.set()
    held = compacted_view(cluster.read(program.changelog))
    stage.rebuild("--damaged", "totals").ok()
    assert of(compacted_view(cluster.read(program.changelog))) == counted(oracle, INPUT)
    stage.run_kops("undo", "last", "--yes", "-B", cluster.servers).ok()
    assert compacted_view(cluster.read(program.changelog)) == held


def test_query_shows_a_key_as_of_a_time(stage, cluster):
    program = stage.set()
    cluster.produce(program.changelog, [Record(b"k1", number.to_bytes(8, "big"), START + 1000 * number, (), 1) for number in (1, 2, 3)])
    query = ("state", "query", str(stage.file), "k1", "-B", cluster.servers, "-o", "json")
    answers = [stage.run_kops(*query, "--at", f"@{START + at}").json for at in (1500, 2000, 2001, 9000)]
    assert [[row["value"] for row in rows] for rows in answers] == [[1], [1], [2], [3]]


def test_the_keys_of_the_verbs_are_those_that_programs_know(stage, cluster, tmp_path):
    program = stage.set()
    common = ("-B", cluster.servers, "-o", "json")
    found = {
        name: sorted(keys_of(stage.run_kops("state", *arguments, *common).out))
        for name, arguments in {
            "verify": ("verify", str(stage.file)),
            "diff": ("diff", str(stage.file)),
            "init": ("init", program.application),
            "snapshot": ("snapshot", str(stage.file), "--to", str(tmp_path / "kept")),
        }.items()
    }
    shown = {name: sorted({re.sub(OF_THE_APPLICATION, r"\1", key) for key in keys}) for name, keys in found.items()}
    assert shown == {name: PINNED[name] for name in shown}, yaml.safe_dump(shown, sort_keys=False)
