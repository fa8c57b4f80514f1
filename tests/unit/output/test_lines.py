import csv
import io
import json

import yaml

from kops.output.lines import LineWriter
from kops.output.records import raw_lines, stream_columns

ROW = {"partition": 0, "offset": 1, "timestamp": None, "key": "k", "value": "v", "headers": [], "tombstone": False}


def written(output_format, *batches):
    stream = io.StringIO()
    lines = LineWriter(lambda rows: stream_columns(rows, output_format), output_format, stream)
    for batch in batches:
        lines.write(batch)
    lines.finish()
    return stream.getvalue()


def test_one_json_object_a_line():
    text = written("json", [ROW, ROW], [], [{**ROW, "key": "ü\n"}])
    assert [json.loads(line) for line in text.splitlines()] == [ROW, ROW, {**ROW, "key": "ü\n"}]
    assert written("json") == ""


def test_half_of_a_surrogate_pair_is_escaped():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    LineWriter(lambda rows: [], "json", stream).write([ROW, {**ROW, "value": "\ud800"}])
    stream.flush()
    assert [json.loads(line)["value"] for line in stream.buffer.getvalue().splitlines()] == ["v", "\ud800"]


def test_yaml_documents_and_csv():
    assert list(yaml.safe_load_all(written("yaml", [ROW], [ROW]))) == [ROW, ROW]
    assert list(csv.DictReader(io.StringIO(written("csv", [ROW], [ROW]))))[1]["key"] == "k"
    assert written("csv").startswith("topic,partition,offset")
    assert written("name", [ROW], [ROW]) == "k\nk\n"


def test_a_table_has_one_heading_and_keeps_its_columns():
    text = written("table", [ROW], [{**ROW, "offset": 123456, "key": "a-longer-key", "value": "x" * 200}], [ROW])
    lines = text.splitlines()
    assert lines[0].split() == ["P", "OFFSET", "TIMESTAMP", "KEY", "VALUE"]
    assert len(lines) == 4
    assert lines[1] == lines[3]
    assert lines[2].endswith("x" * 200)
    assert written("table") == ""


def test_headers_stand_before_the_value():
    assert stream_columns([{**ROW, "headers": [1]}], "table")[-2] == "headers"


def test_raw_values():
    assert raw_lines([b"a", b"\xff"]) == b"a\n\xff\n"
    assert raw_lines([b"a", None, b""]) == b"a\n\n\n"
    assert raw_lines([]) == b""
