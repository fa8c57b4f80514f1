from kops.core.records.models import Record
from kops.core.times import Position
from kops.operations.state.query import accepted, newest_versions


def test_of_a_versioned_store_the_time_decides():
    records = [
        Record("t", 0, offset, time, b"k", value) for offset, (time, value) in enumerate([(10, b"a"), (30, b"c"), (20, b"b"), (30, None)])
    ]
    (newest,) = newest_versions(records, Position("end"))
    assert (newest.timestamp, newest.value) == (30, None)
    (then,) = newest_versions(records, Position("time", 25))
    assert then.value == b"b"
    assert newest_versions(records, Position("time", 5)) == []


def test_what_came_too_late_was_never_accepted():
    times = [(0, 100), (1, 10), (0, 40), (0, 39), (0, 130), (0, 69), (0, 70), (1, 9)]
    records = [Record("t", partition, offset, time, b"k", b"v") for offset, (partition, time) in enumerate(times)]
    newest = {}
    taken = [*accepted(records[:4], 60, newest), *accepted(records[4:], 60, newest)]
    assert [(record.partition, record.timestamp) for record in taken] == [(0, 100), (1, 10), (0, 40), (0, 130), (0, 70), (1, 9)]
