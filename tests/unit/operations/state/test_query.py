from kops.core.records.models import Record
from kops.core.times import Position
from kops.operations.state.query import newest_versions


def test_of_a_versioned_store_the_time_decides():
    records = [
        Record("t", 0, offset, time, b"k", value) for offset, (time, value) in enumerate([(10, b"a"), (30, b"c"), (20, b"b"), (30, None)])
    ]
    (newest,) = newest_versions(records, Position("end"))
    assert (newest.timestamp, newest.value) == (30, None)
    (then,) = newest_versions(records, Position("time", 25))
    assert then.value == b"b"
    assert newest_versions(records, Position("time", 5)) == []
