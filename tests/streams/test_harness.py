"""The harness itself: the driver and a real application agree, and damage is what it says."""

import pytest

from support.programs import KeyBy, Program, Record
from support.streams import compacted_view
from support.streams_apps import run_to_the_end, wait_for, without_offsets

pytestmark = [pytest.mark.streams, pytest.mark.broker]

SUM = Program("sum", "double", field="price", key_by=KeyBy(field="item"))


def prices(count, start=0):
    return [Record(b"%d" % at, b'{"id":%d,"item":"item-%d","price":%d.5}' % (at, at % 7, at), 1_000_000 + at) for at in range(start, count)]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_real_application_writes_what_the_driver_says(oracle, cluster, prefix, tmp_path, guarantee):
    program = SUM.named(prefix)
    cluster.create(program.topic)
    cluster.create(program.output)
    cluster.produce(program.topic, prices(100))
    run_to_the_end(cluster.servers, program, tmp_path, "--guarantee", guarantee)
    written = oracle.run(program, prices(100))
    log = cluster.read(program.changelog)
    assert compacted_view(log, partitions=False) == compacted_view(written.changelog)
    # A marker of today after records of 1970 begins a segment, so that the log of exactly-once may have been compacted meanwhile.
    assert guarantee == "exactly_once_v2" or [(record.key, record.value, record.timestamp) for record in log] == [
        (record.key, record.value, record.timestamp) for record in written.changelog
    ]
    assert [(record.key, record.value, record.timestamp) for record in cluster.read(program.output)] == [
        (record.key, record.value, record.timestamp) for record in written.output
    ]
    assert cluster.committed(program.application)[program.topic, 0] == 100


def test_an_emptied_changelog_keeps_its_offsets_and_a_recreated_one_its_settings(cluster, prefix, tmp_path):
    program = SUM.named(prefix)
    cluster.create(program.topic, 2)
    cluster.create(program.output)
    cluster.produce(program.topic, prices(20))
    run_to_the_end(cluster.servers, program, tmp_path)
    before, config = cluster.ends(program.changelog), cluster.config(program.changelog)
    assert set(before) == {0, 1}
    cluster.empty(program.changelog)
    emptied = {partition: (high, high) for partition, (_low, high) in before.items()}
    wait_for("an empty changelog", lambda: cluster.ends(program.changelog) == emptied)
    cluster.recreate(program.changelog)
    wait_for("a new changelog", lambda: cluster.ends(program.changelog) == {0: (0, 0), 1: (0, 0)})
    assert cluster.config(program.changelog) == config
    assert without_offsets(cluster.read(program.changelog)) == []
