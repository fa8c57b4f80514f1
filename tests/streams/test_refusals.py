"""Input that is wrong: one clear error, exit 2 or 5, and nothing is written."""

import json
from dataclasses import replace

import pytest

from support.programs import KeyBy, Program, Record
from support.staged_applications import KEYS, Stage
from support.streams import compacted_view
from support.streams_apps import running
from support.streams_cases import START

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

SUM = Program("sum", "long", "n", schema="n long")


@pytest.fixture
def stage(cluster, prefix, tmp_path, run_kops):
    return Stage(cluster, prefix, tmp_path, run_kops)


def test_unknown_input_topic_is_refused(stage):
    program = stage.set()
    typo = replace(program, topic=program.topic + "x")
    stage.file.write_text(json.dumps(typo.state_file()), encoding="utf-8")
    stage.refused(typo.topic, program.topic)


def test_empty_input_topic_is_refused(stage):
    program = stage.set(records=[])
    stage.refused(program.topic)


def test_trimmed_input_is_refused(stage, cluster):
    program = stage.set()
    cluster.trim(program.topic, {1: 2})
    stage.refused(f"{program.topic}:1", "2")


def test_compacted_input_of_an_aggregate_is_refused(stage, cluster):
    program = stage.set()
    cluster.set_config(program.topic, cleanup_policy="compact")
    stage.refused(program.topic, "compact")


@pytest.mark.parametrize("damage", [b"{", b"", b'{"n":"text"}', b"[1]", b"\xff"])
def test_undecodable_record_is_refused_or_skipped(stage, cluster, oracle, damage):
    good = [Record(KEYS[at % 3], b'{"n":%d}' % at, START + at, (), at % 3 % 2) for at in range(10)]
    bad = Record(b"k1", damage, START + 99, (), 1)
    program = stage.set(SUM, [*good, bad, replace(bad, value=None)])
    error = stage.refused(f"{program.topic}:1", "offset 3")
    assert "--on-error skip" in error
    if damage in (b'{"n":"text"}', b"[1]"):
        return  # Java's tree model takes these; which of them a program takes is its own business
    outcome = stage.rebuild("--on-error", "skip", "--damaged", "totals").ok()
    assert "1" in outcome.err or "1" in outcome.out
    handler = ("deserialization.exception.handler", "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler")
    skipping = replace(program, config=(handler,))
    expected = {}
    for partition in (0, 1):
        read = [record for record in [*good, bad] if record.partition == partition]
        expected |= {
            key: replace(entry, partition=partition) for key, entry in compacted_view(oracle.run(skipping, read).changelog).items()
        }
    assert compacted_view(cluster.read(program.changelog)) == expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"agregate": {"count": True}, "aggregate": None}, ["stores.totals.agregate", "aggregate"]),
        ({"aggregate": {"cuont": True}}, ["cuont", "count"]),
        ({"type": "key-valeu"}, ["stores.totals.type", "key-value"]),
        ({"where": "value.prise > 1"}, ["prise"]),
        ({"where": "this is not sql"}, ["where"]),
        ({"from": {"topic": "t", "key": "strnig", "value": "string"}}, ["stores.totals.from.key", "string"]),
    ],
    ids=["unknown-field", "unknown-aggregate", "unknown-type", "unknown-column", "not-sql", "unknown-format"],
)
def test_wrong_state_file_is_refused(stage, change, said):
    program = stage.set()
    body = program.state_file()
    body["stores"]["totals"] |= change
    body["stores"]["totals"] = {name: value for name, value in body["stores"]["totals"].items() if value is not None}
    stage.file.write_text(json.dumps(body), encoding="utf-8")
    stage.refused(*said)


def test_missing_or_malformed_state_file_is_refused(stage):
    stage.set()
    stage.file.write_text("a: [", encoding="utf-8")
    stage.refused("state.yaml")
    stage.file.unlink()
    stage.refused("state.yaml")


def test_changelog_with_too_few_partitions_is_refused(stage):
    program = stage.set(changelog_partitions=1)
    stage.refused(program.changelog, "2", "1")


def test_changelog_with_log_append_time_is_refused(stage):
    program = stage.set(changelog_config={"message.timestamp.type": "LogAppendTime"})
    stage.refused(program.changelog, "LogAppendTime")


def test_missing_changelog_is_refused(stage, cluster):
    program = stage.set()
    cluster.delete(program.changelog)
    stage.refused(program.changelog, "--write replace recreates it; do not start the application")


def test_missing_repartition_topic_is_refused_with_the_command_that_creates_it(stage, cluster):
    """How many partitions the program gives it is in no state file: the changelog only hints at it."""
    program = stage.set(replace(SUM, key_by=KeyBy("long", "n")), [Record(b"k", b'{"n":1}', START, (), 0)])
    cluster.delete(program.repartition)
    count = cluster.topics(program.changelog)[program.changelog]
    error = stage.refused(f"kops topics create {program.repartition} --partitions N --config cleanup.policy=delete")
    assert f"(N: as many as it had; {program.changelog} has {count})" in error
    assert "makes it when" not in error


def test_application_without_commits_is_refused(stage):
    program = stage.set(commit=False)
    stage.refused(program.application)


def test_undrained_repartition_topic_is_refused(stage, cluster):
    program = stage.set(replace(SUM, key_by=KeyBy("long", "n")), [Record(b"k", b'{"n":1}', START, (), 0)])
    cluster.produce(program.repartition, [Record(b"\x00" * 8, b"\x00" * 8, START, (), 0)])
    stage.refused(program.repartition)


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_running_application_is_refused(stage, cluster, tmp_path, protocol):
    program = stage.set()
    cluster.create(program.output)
    with running(cluster.servers, program, tmp_path / "app", "--config", f"group.protocol={protocol}") as application:
        application.wait_for("CAUGHT_UP")
        stage.refused(program.application)
        application.stop()


def test_without_approval_nothing_happens(stage, run_kops, cluster):
    stage.set()
    with stage.unchanged():
        rebuild = ("state", "rebuild", str(stage.file), "-B", cluster.servers, "--damaged", "totals")
        assert run_kops(*rebuild).code == 5
        assert run_kops(*rebuild, "--dry-run").code == 0
