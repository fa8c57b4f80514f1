"""Tables: right widths, the same layout drawn or streamed, markup in which a text stays a text; very many rows as few."""

import io
import json
import re
import sys
from contextlib import redirect_stdout
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabulate import tabulate
from wcwidth import wcswidth

from kops.cli.frame import carry_out
from kops.cli.frame.session import Session
from kops.core.blocks import blocks_of
from kops.core.plan import Item, ItemResult, Plan, Result, Status
from kops.output.colour import painted_word
from kops.output.document import DOCUMENT_END, document_head
from kops.output.json_text import write_json, write_json_blocks
from kops.output.lines import LineWriter
from kops.output.markup import markup_stdout
from kops.output.render import render_rows
from kops.output.table import TOGETHER, Column, TextTable, table_of_blocks, write_table

ROWS = [
    {"group": 'a"b', "topic": "ünï", "partition": 0, "lag": None, "note": "", "more": None},
    {"group": "g%s", "topic": "t", "partition": 12, "lag": 1234567, "note": "50 % gone", "more": {"at": [1, None]}},
    {"group": "g", "topic": "t", "partition": 1, "lag": 0, "note": "x\ny", "more": None},
]


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS, ROWS * 2000], ids=len)
def test_json_is_the_renderers(rows):
    expected, written = io.StringIO(), io.StringIO()
    render_rows(rows, ["group"], "json", expected)
    write_json_blocks(blocks_of(iter(rows)), written)
    assert written.getvalue() == expected.getvalue()


@pytest.mark.parametrize("column", [[1, 2], [1, True], [None, None], [None, 3], ["%d", 'a"'], [None, "x"], [1.5, 2], [[], {}]], ids=str)
def test_json_of_every_kind_of_column(column):
    rows, written = [{"50 %": value, "%s": "%d"} for value in column], io.StringIO()
    write_json_blocks(blocks_of(rows), written)
    assert written.getvalue() == "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]\n"


@pytest.mark.parametrize("rows", [[], ROWS[:2], ROWS[:2] * 3000], ids=len)
def test_tables_are_the_renderers(rows):
    columns = [Column("group"), Column("topic"), Column("partition", "PART"), Column("lag"), Column("note")]
    expected, written = io.StringIO(), io.StringIO()
    render_rows(rows, columns, "table", expected)
    write_table(table_of_blocks(blocks_of(iter(rows)), columns), written)
    assert written.getvalue() == expected.getvalue()


def test_a_terminal_cuts_and_columns_have_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "12")
    stream = io.StringIO()
    rows, columns = [{"lag": 5, "note": "a long note"}], [Column("lag"), Column("note")]
    table = table_of_blocks(blocks_of(rows), columns, {"lag": lambda lag: f"{lag}!"})
    write_table(table, stream, terminal=True)
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


class Terminal(io.StringIO):
    def isatty(self):
        return True


def written(rows, columns, output_format="table", stream=None, **options):
    stream = stream or io.StringIO()
    render_rows(rows, columns, output_format, stream, **options)
    return stream.getvalue()


@pytest.mark.parametrize("count", [1, TOGETHER + 1])
def test_wide_characters_take_two_columns(count):
    rows = [{"topic": "日本語", "state": "ok"}, {"topic": "orders", "state": "größe"}] * count
    lines = written(rows, ["topic", "state"]).splitlines()
    assert lines[:3] == ["TOPIC   STATE", "日本語  ok", "orders  größe"]
    assert len(lines) == 2 * count + 1
    assert lines[1:3] * count == lines[1:]


def test_a_terminal_is_filled_and_not_passed_by_wide_characters(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    lines = written([{"name": "日本語" * 6, "note": "一二 三四" * 9}], ["name", "note"], terminal=True).splitlines()
    assert max(map(wcswidth, lines)) <= 30
    assert "…" in lines[1]


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_the_layout_is_that_of_tabulate_also_of_wrapped_cells_and_in_colour(monkeypatch, term):
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    rows = [["日本語", "1", "FAILED", "one\ntwo three"], ["orders", "-", "größe", ""], ["o\no", "1234", "ok", "-"]]
    titles, right = ["TOPIC", "PART", "STATE", "NOTE"], [False, True, False, False]
    columns = list(zip(*rows, strict=True))
    widths = [
        max(wcswidth(line) for text in (title, *column) for line in text.split("\n")) for title, column in zip(titles, columns, strict=True)
    ]
    stream = Terminal()
    write_table(TextTable(titles, columns, right, list(map(str.lower, titles)), widths), stream, terminal=True, whole=True)
    shown = [[*row[:2], painted_word(row[2]) if term == "xterm" else row[2], row[3]] for row in rows]
    aligned = ["right" if each else "left" for each in right]
    expected = tabulate([titles, *shown], tablefmt="plain", disable_numparse=True, colalign=aligned, preserve_whitespace=True)
    assert stream.getvalue() == "".join(f"{line.rstrip()}\n" for line in expected.split("\n"))
    assert ("\x1b[31mFAILED" in stream.getvalue()) == (term == "xterm")


class Cells(HTMLParser):
    """The texts of a page's cells, and its tags."""

    def __init__(self):
        super().__init__()
        self.cells, self.tags = [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data.rstrip("\n") if data.isspace() else data


@given(st.text(st.sampled_from("ab<>&\"'/|`*_[]{}!\\ \n-~"), max_size=12))
def test_no_cell_is_markup(text):
    shown = text.replace("\n", "\\n")
    row = {"name": text, "lag": 5}
    page = Cells()
    page.feed(written([row], ["name", "lag"], "html"))
    assert page.tags == {"table", "thead", "tbody", "tr", "th", "td"}
    assert [cell.strip() for cell in page.cells] == ["NAME", "LAG", shown.strip(), "5"]
    for markup, special in (("markdown", "`*<>[]"), ("jira", "{}[]!")):
        line = written([row], ["name", "lag"], markup).splitlines()[-1]
        cells = [cell.strip() for cell in re.split(r"(?<!\\)(?:\\\\)*\|", line)]
        assert len(cells) == 4
        assert not re.search(rf"(?<!\\)(?:\\\\)*[{re.escape(special)}]", line)
        assert re.sub(r"\\(.)", r"\1", line.strip("| ")).rpartition("|")[0].strip() == shown.strip()


MARKED = {
    "markdown": "| NAME      |   LAG |\n|:----------|------:|\n| a\\|b\\<i\\> |     5 |\n",
    "html": '<table>\n<thead>\n<tr><th>NAME  </th><th style="text-align: right;">  LAG</th></tr>\n</thead>\n<tbody>\n'
    '<tr><td>a|b&lt;i&gt;</td><td style="text-align: right;">    5</td></tr>\n</tbody>\n</table>\n',
    "jira": "|| NAME    ||   LAG ||\n| a\\|b<i> |     5 |\n",
}


@pytest.mark.parametrize("output_format", MARKED)
def test_markup(output_format):
    assert written([{"name": "a|b<i>", "lag": 5}], ["name", "lag"], output_format, terminal=True) == MARKED[output_format]
    stream = io.StringIO()
    lines = LineWriter(lambda _: ["name", "lag"], output_format, stream)
    lines.write([{"name": "a|b<i>", "lag": 5}])
    lines.finish()
    assert stream.getvalue() == MARKED[output_format]


BETWEEN = {
    "markdown": ("```\n", "\n```\n", "````\na\n```\n````\n"),
    "html": ("<pre>", "</pre>\n", "<pre>a\n```</pre>\n"),
    "jira": ("{noformat}\n", "\n{noformat}\n", "{noformat}\na\n```\n{noformat}\n"),
}


@pytest.mark.parametrize("output_format", BETWEEN)
def test_lines_between_tables_are_shown_as_they_are(output_format):
    begin, end, fenced = BETWEEN[output_format]
    session = Session({"output": output_format})
    with redirect_stdout(io.StringIO()) as out, markup_stdout(lambda: session.markup):
        sys.stdout.write("orders: 3 partitions\n")
        sys.stdout.write("  of <b>\n\n")
        session.render([{"name": "a"}], ["name"])
        print("a\n```")
    of = "of &lt;b&gt;" if output_format == "html" else "of <b>"
    table = written([{"name": "a"}], ["name"], output_format)
    head, tail = (document_head("kops"), DOCUMENT_END) if output_format == "html" else ("", "")
    assert out.getvalue() == f"{head}{begin}orders: 3 partitions\n  {of}{end}\n{table}\n{fenced}{tail}"


@pytest.mark.parametrize("output_format", ["table", "json"])
def test_other_formats_are_written_at_once(output_format):
    with redirect_stdout(io.StringIO()) as out, markup_stdout(lambda: Session({"output": output_format}).markup):
        sys.stdout.write("a\n\n")
        assert out.getvalue() == "a\n\n"


def test_a_plan_is_a_table_of_markup_too():
    items = (Item("billing orders:0", "move", 10, 25), Item("billing orders:1", "move", 7, 5, "earlier"))
    plan = Plan("offsets.move", "move billing", "id", "local", items)
    with redirect_stdout(io.StringIO()) as out:
        carry_out.show_plan_as_data(Session({"output": "markdown", "quiet": True}), plan)
    assert out.getvalue().splitlines()[0] == "| TARGET           | ACTION   |   BEFORE |   AFTER | DELTA   | REASON   |"
    assert out.getvalue().splitlines()[2] == "| billing orders:0 | move     |       10 |      25 | +15     |          |"


def test_words_have_colours_on_a_terminal_and_nowhere_else(monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    rows = [{"name": "failed", "status": "failed"}, {"name": "b", "status": "done"}]
    plain = "NAME    STATUS\nfailed  failed\nb       done\n"
    coloured = "NAME    STATUS\nfailed  \x1b[31mfailed\x1b[0m\nb       \x1b[32mdone\x1b[0m\n"
    assert written(rows, ["name", "status"], stream=Terminal(), terminal=True) == coloured
    assert written(rows, ["name", "status"], terminal=False) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert written(rows, ["name", "status"], stream=Terminal(), terminal=True) == plain
