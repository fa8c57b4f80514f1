"""What strangers wrote acts on no terminal, wherever it is shown: names, headers, messages, configurations, schemas."""

import csv
import io
import json
import re
import sys
import unicodedata
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from types import SimpleNamespace

import click
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kops.cli.frame import carry_out
from kops.cli.frame.failure import report
from kops.cli.frame.findings_view import findings_text
from kops.cli.frame.main import main
from kops.cli.frame.plan_view import plan_text
from kops.cli.frame.session import Session
from kops.core.blocks import Block, Blocks
from kops.core.errors import KopsError, OperationFailed
from kops.core.findings import Finding, Severity
from kops.core.groups.lag_rates import Line, Look
from kops.core.plan import Item, ItemResult, Plan, Result, Status, plan_document
from kops.core.visible import escaped_json, indented, visible, visible_bytes, visible_lines
from kops.output.guard import Guard, for_data, guarded_stderr, guarded_stdout, unguarded
from kops.output.json_text import json_text, write_json
from kops.output.lines import LineWriter, write_json_lines
from kops.output.progress import StreamProgress
from kops.output.records import as_cells, stream_columns
from kops.output.render import render_object, render_rows
from kops.output.report import NEUTRAL, Report, Section, Table, report_html
from kops.output.table import as_columns, table_of_blocks, write_table
from kops.output.watch import json_lines, plain_lines

ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0001-\U000e007f]"
)
"""Written out here once more: C0 but line ends and tabs, DEL, C1, bidirectional marks, what has no width, surrogates."""
WORST = (
    "\x1b[1A\x1b[2K",  # a line up, and erased
    "\x1b]52;c;cm0gLXJm\x07",  # the clipboard
    "\x9b2J",  # CSI in one character
    "\r",
    "\x08",
    "\x7f",
    "\u202e",
    "\u2066",
    "\u200b",
    "\ufeff",
    "\u2028",
    "\x85",
    "\ud800",
    "\U000e0041",
    "\nkops: done; journal 1",
)
hostile = st.lists(st.sampled_from([*WORST, "a", "ü", "🔑", "%s", '"', "\\", ","]) | st.characters(), min_size=1, max_size=6).map("".join)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def written(write):
    stream = io.StringIO()
    write(stream)
    return stream.getvalue()


def lines_of(text):
    """The lines as a terminal has them, all harmless."""
    assert not ACTING.search(text), text
    return text.splitlines()


@pytest.mark.parametrize("hidden", ["\u034f", "\u115f", "\u17b4", "\u180b", "\u3164", "\uffa0", "\U000e0100"])
def test_what_has_no_width_is_shown_although_python_calls_it_printable(hidden):
    assert hidden.isprintable()
    for show in (visible, visible_lines, indented):
        assert show(f"pay{hidden}ments") == f"pay{hidden.encode('unicode_escape').decode()}ments"


@given(st.text())
def test_nothing_that_acts_is_left(text):
    for shown in (visible(text), visible_lines(text), indented(text), visible_bytes(text.encode("utf-8", "surrogatepass")).decode()):
        assert not ACTING.search(shown)
        assert all(unicodedata.category(each) not in ("Cc", "Cs", "Zl", "Zp") or each in "\n\t" for each in shown)
    assert len(visible(text).splitlines()) <= 1
    assert not re.search(r"\n(?!  )", indented(text))


@given(st.binary())
def test_bytes_of_no_encoding_do_not_act_either(data):
    lines_of(visible_bytes(data).decode())


@pytest.mark.parametrize("text", ["größe 🔑", "naïve café", "日本語", "Ελλάδα", "עברית", "a b", "x\\n"])
def test_what_does_not_act_stays(text):
    assert visible(text) == visible_lines(text) == text
    assert json.loads(json_text(text)) == text
    assert text in json_text({"a": text}) or "\\" in text


def test_escapes():
    assert visible("a\x1b[2K\r\n\t\x9b\u202e\u200b\ufeff\x7f") == "a\\x1b[2K\\r\\n\\t\\x9b\\u202e\\u200b\\ufeff\\x7f"


@given(hostile)
def test_json_means_the_same(text):
    for shown in (
        json_text({text: [text]}),
        written(lambda stream: write_json({text: [text]}, stream)),
        written(lambda stream: write_json_lines([json.dumps({text: [text]}, ensure_ascii=False) + "\n"], stream)),
    ):
        lines_of(shown)
        assert json.loads(shown) == {text: [text]}
    blocks = Blocks((Block(2, {"name": None, "same": text}, {"name": [text, "a"]}),))
    shown = written(lambda stream: write_json({"items": blocks}, stream))
    lines_of(shown)
    assert json.loads(shown) == {"items": [{"name": text, "same": text}, {"name": "a", "same": text}]}
    assert json.loads(escaped_json(json.dumps(text, ensure_ascii=False))) == text


@given(hostile.filter(lambda text: text.encode("utf-8", "replace").decode() == text))
def test_yaml_means_the_same(text):
    body = {"name": text, "config": {text: [text, 1]}}
    shown = written(lambda stream: render_object(body, "yaml", stream))
    lines_of(shown)
    assert yaml.safe_load(shown) == body
    writer = io.StringIO()
    LineWriter(lambda _: ["name"], "yaml", writer).write([body, body])
    lines_of(writer.getvalue())
    assert list(yaml.safe_load_all(writer.getvalue())) == [body, body]


@given(hostile, hostile)
def test_tables_keep_a_line_for_each_row(name, value):
    rows = [{"group": name, "members": 1, "config": {name: value}, "hosts": [value]}] * 2
    keys = list(rows[0])
    assert len(lines_of(written(lambda stream: render_rows(rows, keys, "table", stream)))) == 3
    assert len(lines_of(written(lambda stream: render_rows(rows, keys, "table", stream, terminal=True)))) == 3
    assert len(lines_of(written(lambda stream: render_object(rows[0], "table", stream)))) == 4
    wrapped = lines_of(written(lambda stream: render_rows(rows, keys, "table", stream, terminal=True, whole=True)))
    assert sum(not line.startswith(" ") for line in wrapped[1:]) <= 2, "no line that continues a value looks like a row"
    block = Block(2, {"group": name, "value": None}, {"value": [value, name]})
    table = table_of_blocks([block], as_columns(["group", "value"]))
    assert len(lines_of(written(lambda stream: write_table(table, stream)))) == 3
    writer = io.StringIO()
    LineWriter(lambda _: ["group", "hosts"], "table", writer).write(rows)
    assert len(lines_of(writer.getvalue())) == 3


@given(hostile)
def test_csv_and_names_are_data_in_a_pipe_and_visible_on_a_terminal(name):
    rows = [{"group": name}]
    piped = written(lambda stream: render_rows(rows, ["group"], "csv", stream))
    if "\r" not in name:  # which Python's writer of CSV quotes from 3.13 on
        assert list(csv.reader(io.StringIO(piped, newline=""))) == [["group"], [name]]
    assert written(lambda stream: render_rows(rows, ["group"], "name", stream)) == name + "\n"
    for form, lines in (("csv", 2), ("name", 1)):
        assert len(lines_of(written(lambda stream, form=form: render_rows(rows, ["group"], form, stream, terminal=True)))) == lines
        writer = io.StringIO()
        LineWriter(lambda _: ["group"], form, writer, terminal=True).write(rows)
        assert len(lines_of(writer.getvalue())) == lines


@given(hostile, hostile)
def test_records(name, value):
    row = {"partition": 0, "offset": 1, "timestamp": None, "key": name, "key_encoding": "text", "value": {name: value}}
    row |= {"value_encoding": "json", "tombstone": False, "headers": [{"key": name, "value": value, "encoding": "text"}]}
    writer = io.StringIO()
    LineWriter(lambda rows: stream_columns(rows, "table"), "table", writer).write([as_cells(row)])
    assert len(lines_of(writer.getvalue())) == 2


def plan_of(text, other):
    items = (
        Item(text, "move", 1, other, text),
        Item(other, "create", None, {text: other, "config": {other: text}}, other),
        Item(text, "alter", {text: 1, "config": {other: text}}, {text: other, "config": {}}),
    )
    return Plan("test.recorded", f"change {text}", "id", other, items, warnings=(f"it is {text}",), notes=(other,))


@given(hostile, hostile)
def test_plans_and_results(text, other):
    plan = plan_of(text, other)
    calm = lines_of(plan_text(plan_of("a", "b")))
    assert len(lines_of(plan_text(plan))) <= len(calm)
    with redirect_stderr(Terminal()) as err, redirect_stdout(io.StringIO()) as out:
        session = Session({})
        carry_out.show_plan(session, plan, always=True)
        carry_out.show_plan_as_data(session, plan)
        carry_out.show_plan_as_data(Session({"output": "json"}), plan)
        failed = ItemResult(text, Status.FAILED, KopsError(other).as_json(), {text: other})
        carry_out.finish(session, Result((failed,), messages=(text,)), None)
    lines_of(err.getvalue())
    lines_of(out.getvalue())
    shown = err.getvalue().splitlines()
    assert sum(line.startswith("kops: done") for line in shown) == 0
    assert json.loads(json_text(plan_document(plan))) == json.loads(json.dumps(plan_document(plan)))


@given(hostile)
def test_notes_progress_and_errors(text):
    with redirect_stderr(io.StringIO()) as err:
        Session({}).note(f"warning: {text}")
        StreamProgress(err, terminal=False).step(text)
        error = OperationFailed(f"cannot {text}", hint=text, name=text)
        assert report(error, []) == 1
        assert report(click.UsageError(text), []) == 2
        assert report(RuntimeError(text), []) == 1
    assert not any(line.startswith("kops: done") for line in lines_of(err.getvalue()))
    with redirect_stderr(io.StringIO()) as err:
        report(error, ["-o", "json"])
    assert len(lines_of(err.getvalue())) == 1
    assert json.loads(err.getvalue())["errors"][0]["details"] == {"name": text}


@given(hostile)
def test_findings_watches_and_reports(text):
    finding = Finding(Severity.WARNING, "check", text, text, commands=(f"kops groups lag {text}",))
    lines_of(findings_text([finding]))
    line = Line((text,), 1, (1,))
    look = Look((line,), line)
    plain, lines = io.StringIO(), io.StringIO()
    plain_lines(plain)(look, "now", [text])
    json_lines("group", lines)(look, "now", [text])
    assert len(lines_of(plain.getvalue())) == len(lines_of(lines.getvalue())) == 1
    table = Table(text, ["key"], [{"key": text}], text)
    page = report_html(Report(text, text, NEUTRAL, [(text, text)], [text], [Section(text, [(text, text)], [text], None, [table])], text))
    lines_of(page)
    assert "<script" not in page


def test_the_guard_holds_whatever_is_written():
    terminal, pipe = Terminal(), io.StringIO()
    with redirect_stderr(pipe), guarded_stderr():
        print("a\x1b[2Kb\r\n\tc", file=sys.stderr)
        click.echo("a\x9b2K\r", err=True)
    assert pipe.getvalue() == "a\\x1b[2Kb\\r\n\tc\na\\x9b2K\\r\n"
    with redirect_stdout(terminal), guarded_stdout(lambda: False):
        click.echo("a\x9b2Kb")
        assert for_data(sys.stdout).write("\x07") == 1
    assert terminal.getvalue() == "a\\x9b2Kb\n\\x07"
    for people, shown in ((True, "\\x07"), (False, "\x07")):
        pipe = io.StringIO()
        with redirect_stdout(pipe), guarded_stdout(lambda people=people: people):
            sys.stdout.write("\x07")
            for_data(sys.stdout).write("\x07")
        assert pipe.getvalue() == shown + "\x07"


def test_bytes_to_a_terminal_are_guarded_and_to_a_pipe_raw():
    for terminal, shown in ((True, b"\\x9b\xc3\xbc\\x1b[2K\n"), (False, b"\x9b\xc3\xbc\x1b[2K\n")):
        beneath = io.BytesIO()
        stream = SimpleNamespace(isatty=lambda terminal=terminal: terminal, buffer=beneath)
        assert Guard(stream, lambda: True).buffer.write(b"\x9b\xc3\xbc\x1b[2K\n") == 8
        assert beneath.getvalue() == shown


def test_progress_still_steers_its_own_line():
    terminal = Terminal()
    progress = StreamProgress(Guard(terminal, lambda: True), terminal=True)
    progress.step("reading \x1b[2K")
    progress._shown = 0
    progress.advance(1, 2, "records")
    assert terminal.getvalue().startswith("reading \\x1b[2K ...\n\r  1 of 2 records")
    assert terminal.getvalue().endswith("\x1b[K")
    assert unguarded(Guard(terminal, lambda: True)) is terminal


def test_the_whole_command_guards_both_streams(home, capsys):
    assert main(["topics", "\x1b]0;title\x07\u202e"]) == 2
    assert main(["journal", "show", "\x9b2J\nkops: done"]) != 0
    shown = capsys.readouterr()
    lines_of(shown.out)
    assert not any(line.startswith("kops: done") for line in lines_of(shown.err))


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("KOPS_BOOTSTRAP_SERVERS", raising=False)


def test_the_journal_and_plan_files_hold_no_control_character(tmp_path):
    from kops.operations.protocol.journal import Journal

    plan = replace(plan_of("\x9b2J\u202e", "\x1b[2K"), cluster_id="c")
    journal = Journal(tmp_path / "journal")
    entry = journal.open(plan)
    for file in (tmp_path / "journal").rglob("*.json"):
        lines_of(file.read_text(encoding="utf-8"))
    assert journal.read(entry.id).plan.summary == plan.summary
    carry_out.save_plan(plan, tmp_path / "plan.json")
    lines_of((tmp_path / "plan.json").read_text(encoding="utf-8"))
