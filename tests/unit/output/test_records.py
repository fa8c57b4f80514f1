import pytest

from kops.output.records import as_cells, as_line, columns

ROW = {"partition": 0, "offset": 1, "timestamp": None, "key": "k", "value": {"a": "ü\n"}, "headers": [], "tombstone": False}


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, "-"),
        ("", ""),
        ("größe 🔑", "größe 🔑"),
        ("two\nlines\tand\x1b[31m", "two\\nlines\\tand\\x1b[31m"),
        ("turned \u202e round", "turned \\u202e round"),
        ("\ud800", "\\ud800"),
        (6000.0, "6000.0"),
        ({"a": [1, "ü\n"]}, '{"a":[1,"ü\\n"]}'),
    ],
)
def test_one_line_without_control_characters(value, line):
    assert as_line(value) == line


def test_base64_is_said():
    assert as_line("AQ==", "base64") == "base64:AQ=="


def test_cells():
    headers = [{"key": "v", "value": "AQ==", "encoding": "base64"}, {"key": "n", "value": None, "encoding": None}]
    assert as_cells(ROW)["value"] == '{"a":"ü\\n"}'
    assert as_cells({**ROW, "value": None, "tombstone": True, "headers": headers})["value"] == "(tombstone)"
    assert as_cells({**ROW, "headers": headers})["headers"] == "v=base64:AQ== n=-"


def test_columns():
    assert columns([ROW], "table")[-1] == "value"
    assert columns([{**ROW, "headers": [1]}], "table")[-1] == "headers"
    assert columns([ROW], "csv") == list(ROW)
    assert columns([], "csv")[0] == "topic"
    assert columns([ROW], "name") == ["key"]
