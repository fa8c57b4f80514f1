import pytest

from kops.formats.batches.header import UnreadableBatch
from kops.spark.reading.batch_source import BatchSource, noting_unreadable


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
