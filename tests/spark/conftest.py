"""What the tests of Spark jobs share."""

import pytest


@pytest.fixture(scope="session")
def store_of():
    """Make the store of a state file: ``store_of({"sum": "value", "as": "long"}, value="long", key_by=...)``."""
    from kops.core.statefile import parse_state_file

    def make(aggregate, *, key="string", value="long", **fields):
        body = {"from": {"topic": "t", "key": key, "value": value}, "aggregate": aggregate, **fields}
        file = parse_state_file("state.yaml", {"application": "a", "streams": {"version": "4.3"}, "stores": {"s": body}})
        return file, file.stores[0]

    return make


@pytest.fixture(scope="session")
def records_of(spark):
    """Make the DataFrame that the Kafka source would give: rows of (partition, key, value, timestamp), offsets by their order."""

    def make(rows):
        counts, numbered = {}, []
        for partition, key, value, timestamp in rows:
            offset = counts[partition] = counts.get(partition, -1) + 1
            numbered.append(
                (None if key is None else bytearray(key), None if value is None else bytearray(value), partition, offset, timestamp)
            )
        schema = "key binary, value binary, partition int, offset bigint, timestamp_ms bigint"
        # A task reads one whole partition, as it does from Kafka.
        slices = [spark.createDataFrame([row for row in numbered if row[2] == number], schema).coalesce(1) for number in sorted(counts)]
        union = slices[0]
        for more in slices[1:]:
            union = union.union(more)
        return union

    return make
