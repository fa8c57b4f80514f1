"""Very many rows are written as the one renderer writes them."""

import io
import json

import pytest

from kops.core.blocks import blocks_of
from kops.core.plan import ItemResult, Result, Status
from kops.output.json_text import write_json
from kops.output.render import Column, render_rows
from kops.output.wide import write_json_rows, write_wide

ROWS = [
    {"group": 'a"b', "topic": "ünï", "partition": 0, "lag": None, "note": "", "more": None},
    {"group": "g%s", "topic": "t", "partition": 12, "lag": 1234567, "note": "50 % gone", "more": {"at": [1, None]}},
    {"group": "g", "topic": "t", "partition": 1, "lag": 0, "note": "x\ny", "more": None},
]


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS, ROWS * 2000], ids=len)
def test_json_is_the_renderers(rows):
    expected, written = io.StringIO(), io.StringIO()
    render_rows(rows, ["group"], "json", expected)
    write_json_rows(blocks_of(iter(rows)), written)
    assert written.getvalue() == expected.getvalue()


@pytest.mark.parametrize("column", [[1, 2], [1, True], [None, None], [None, 3], ["%d", 'a"'], [None, "x"], [1.5, 2], [[], {}]], ids=str)
def test_json_of_every_kind_of_column(column):
    rows, written = [{"50 %": value, "%s": "%d"} for value in column], io.StringIO()
    write_json_rows(blocks_of(rows), written)
    assert written.getvalue() == "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]\n"


@pytest.mark.parametrize("rows", [[], ROWS[:2], ROWS[:2] * 3000], ids=len)
def test_tables_are_the_renderers(rows):
    columns = [Column("group"), Column("topic"), Column("partition", "PART"), Column("lag"), Column("note")]
    expected, written = io.StringIO(), io.StringIO()
    render_rows(rows, columns, "table", expected)
    write_wide(blocks_of(iter(rows)), columns, written)
    assert written.getvalue() == expected.getvalue()


def test_a_terminal_cuts_and_columns_have_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "12")
    stream = io.StringIO()
    rows, columns = [{"lag": 5, "note": "a long note"}], [Column("lag"), Column("note")]
    write_wide(blocks_of(rows), columns, stream, terminal=True, texts={"lag": lambda lag: f"{lag}!"})
    assert stream.getvalue() == "LAG  NOTE\n 5!  a long…\n"


RESULTS = (
    *(ItemResult(f"g t:{number}", Status.DONE, None, number) for number in range(1_500)),
    ItemResult("g%s u:0", Status.DONE),
    ItemResult("g u:1", Status.FAILED, {"code": "not_found", "message": "gone"}),
    ItemResult("g u:2", Status.DONE, None, {"records": 1}),
    ItemResult("g u:3", Status.DONE, None, True),
)


def test_results_in_blocks_are_written_as_those_in_rows():
    result = Result(RESULTS, ("done",))
    expected, written = io.StringIO(), io.StringIO()
    write_json(result.as_json(), expected)
    write_json(result.as_json(in_blocks=True), written)
    assert written.getvalue() == expected.getvalue()
    assert [item["target"] for item in json.loads(written.getvalue())["items"]] == [result.target for result in RESULTS]
