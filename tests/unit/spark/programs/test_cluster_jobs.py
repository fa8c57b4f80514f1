"""What tasks on other machines send to those behind them, compared with what these received."""

import pyarrow
import pytest
from pyarrow import ipc

from kops.spark.programs.cluster_jobs import SentFiles, _digest
from kops.spark.programs.models import ProgramTask
from kops.spark.reading.batch_source import TaskInput

SCHEMA = pyarrow.schema(
    [("timestamp", pyarrow.int64()), ("key", pyarrow.binary()), ("value", pyarrow.binary()), ("headers", pyarrow.binary())]
)
ROWS = [(1, b"a", b"one", None), (2, b"b", None, b""), (3, None, b"", b"h"), (4, b"ab", b"two", None)]


@pytest.fixture
def digest(tmp_path):
    def of(rows, size):
        file = tmp_path / "records.arrow"
        with ipc.new_file(str(file), SCHEMA) as writer:
            for start in range(0, len(rows), size):
                columns = zip(*rows[start : start + size], strict=True)
                arrays = [pyarrow.array(list(column), kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]
                writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=SCHEMA))
        return _digest(file)

    return of


@pytest.mark.parametrize("size", [1, 2, 3])
def test_batches_make_no_difference(digest, size):
    assert digest(ROWS, size) == digest(ROWS, 4)


@pytest.mark.parametrize(
    "other",
    [
        ROWS[:3],
        [*ROWS, ROWS[3]],
        [ROWS[1], ROWS[0], *ROWS[2:]],
        [(1, b"a", b"one", None), (2, b"b", b"", b""), *ROWS[2:]],
        [(1, b"ab", b"one", None), (2, b"", None, b""), *ROWS[2:]],
        [(7, *ROWS[0][1:]), *ROWS[1:]],
    ],
)
def test_other_records_do(digest, other):
    assert digest(other, 4) != digest(ROWS, 4)


def test_a_file_without_records(digest):
    assert digest([], 1) == [0]


def test_a_sub_topology_that_runs_again_replaces_what_it_sent():
    """As those do that take answers of foreign-key joins: the paths of both runs are the same."""
    first, second = ProgramTask(0, 0, (), passes_on=("asked", "more")), ProgramTask(0, 0, (), passes_on=("asked",))
    other, late = ProgramTask(1, 0, (), passes_on=("more",)), ProgramTask(1, 1, (), passes_on=("more",))
    sent = SentFiles()
    sent.add("one", [first], {f"repartitioned/time/{topic}/{at}/00000-00000.arrow": [1] for topic in ("asked", "more") for at in (0, 1)})
    sent.add("two", [other, late], {"repartitioned/time/more/0/00001-00001.arrow": [2]})
    sent.add("three", [TaskInput("in", 0, 0, 5)], {"repartitioned/time/in/0/99999-00000.arrow": [3]})
    sent.add("four", [second], {"repartitioned/time/asked/0/00000-00000.arrow": [4]})
    assert list(sent.of({"asked", "more"})) == [("one", ["more"]), ("two", ["more"]), ("four", ["asked"])]
    assert list(sent.of({"in"})) == [("three", ["in"])]
    assert sent.digests({("asked", 0), ("asked", 1), ("more", 0)}) == {
        "repartitioned/time/more/0/00000-00000.arrow": [1],
        "repartitioned/time/more/0/00001-00001.arrow": [2],
        "repartitioned/time/asked/0/00000-00000.arrow": [4],
    }
