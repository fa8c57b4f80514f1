import pyarrow
import pytest

from kops.formats.batches.header import UnreadableBatch
from kops.spark.driver.watch import records_reported
from kops.spark.reading.batch_source import BatchSource, TaskInput, noting_unreadable


class Here:
    """A session whose tasks run where they are asked for."""

    def range(self, start, end, step, partitions):
        assert (start, end, step) == (0, partitions, 1)
        self.numbers = pyarrow.record_batch({"id": [*range(partitions)]})
        return self

    def mapInArrow(self, function, schema):  # noqa: N802
        return list(function([self.numbers]))


def damaged():
    yield "records"
    raise UnreadableBatch("checksum")


def test_unreadable_batch_is_noted_for_the_driver(tmp_path):
    source = BatchSource(None, {}, str(tmp_path))
    assert not source.met_unreadable
    records = noting_unreadable(damaged(), source.progress_folder)
    assert next(records) == "records"
    assert not source.met_unreadable
    with pytest.raises(UnreadableBatch):
        next(records)
    assert source.met_unreadable


def test_unreadable_batch_is_raised_where_nothing_is_noted():
    with pytest.raises(UnreadableBatch):
        list(noting_unreadable(damaged(), None))
    assert not BatchSource(None, {}).met_unreadable


def test_a_range_that_is_read_again_counts_again(tmp_path, monkeypatch):
    monkeypatch.setattr(TaskInput, "records", lambda *_: iter(["12345", "678"]))
    source, pieces = BatchSource(Here(), {}, str(tmp_path)), [TaskInput("t", number, 0, 8) for number in range(2)]
    for readings in (1, 2):
        source.by_task(len(pieces), "", lambda number, read: (pyarrow.table({"n": [len(part)]}) for part in read(pieces[number])))
        assert records_reported(str(tmp_path)) == readings * 16
