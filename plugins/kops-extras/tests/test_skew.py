from kops_extras.skew import measure, sample, tails, verdict

from kops.plugins.api import OffsetRange, Record, TopicPartition

WHOLE = {
    TopicPartition("t", 0): OffsetRange(0, 10),
    TopicPartition("t", 1): OffsetRange(100, 130),
    TopicPartition("t", 2): OffsetRange(5, 5),
}


def record(partition, offset, key):
    return Record("t", partition, offset, 0, key, b"1234")


def test_tails():
    assert [found.start for found in tails(WHOLE, 20).values()] == [0, 110, 5]


def test_measured():
    records = [record(0, offset, b"k%d" % offset) for offset in range(10)]
    records += [record(1, offset, b"hot" if offset % 3 else None) for offset in range(100, 130)]
    first, second, third = measured = measure(WHOLE, sample([records[:7], records[7:]]))
    assert (first.partition, first.offsets, first.share, first.sampled, first.keys) == (1, 30, 0.75, 30, 1)
    assert (first.hottest, round(first.hottest_share, 2)) == (b"hot", 0.67)
    assert (second.partition, second.keys, second.hottest_share, second.average_bytes) == (0, 10, 0.1, 6)
    assert (third.offsets, third.sampled, third.hottest) == (0, 0, None)
    assert verdict(measured) == "partition 1 has 2.2 times its even share of the offsets (75% of the topic)"


def test_an_empty_topic():
    assert verdict(measure({TopicPartition("t", 0): OffsetRange(3, 3)}, {})) == "the topic is empty"
