"""Rows of `verify --capture`: what differs from the program in each, and a row for each store that the file does not have."""

import json
from pathlib import Path

import pytest

from kops.core.streams.capture_file import read_capture
from kops.operations.state.against_program import AgainstProgram, Disagreement, difference_text, with_program
from kops.operations.state.compare import Comparison

CAPTURED = json.loads((Path(__file__).parents[2] / "core" / "streams" / "capture.json").read_text(encoding="utf-8"))
ROWS = [{"store": name, "status": "equal", "keys": 3, "reasons": []} for name in ("counts", "windows")]
FOUND = Comparison(ROWS, 0, ["a note"], "equal")


def test_what_differs_is_in_the_row_of_its_store_and_that_of_the_application_in_all():
    said = [Disagreement(None, "guarantee", "at_least_once", "exactly_once_v2"), Disagreement("windows", "window.size", "1m", "5m")]
    found = with_program(FOUND, AgainstProgram(said, (), ["of the program"]))
    of_application = {"what": "guarantee", "file": "at_least_once", "program": "exactly_once_v2", "changelog": None}
    of_store = {"what": "window.size", "file": "1m", "program": "5m", "changelog": None}
    assert [row["program"] for row in found.rows] == [[of_application], [of_application, of_store]]
    assert (found.status, found.notes) == ("different", ["a note", "of the program"])


@pytest.mark.parametrize("status", ["equal", "different", "unclear"])
def test_without_differences_the_status_stays(status):
    found = with_program(Comparison(ROWS, 0, [], status), AgainstProgram((), (), ()))
    assert (found.status, [row["program"] for row in found.rows]) == (status, [[], []])
    assert "agree with the program" in found.notes[0]


def test_stores_that_the_file_does_not_have():
    sessions = next(store for store in read_capture(CAPTURED, "c.json").stores if store.name == "sessions")
    found = with_program(FOUND, AgainstProgram((), (sessions,), ()))
    row = {"store": "sessions", "status": "uncovered", "changelog": "many-sessions-changelog", "keys": None, "reasons": [], "program": []}
    assert found.rows[2] == row
    assert found.notes[1] == "not compared, since the state file does not have them: sessions (session)"
    assert found.status == "equal"


def test_differences_as_sentences():
    assert difference_text(Disagreement(None, "cache", "true", "false")) == "cache is true in the state file, and false in the program"
    assert difference_text(Disagreement("s", "start of t", None, "latest")) == (
        "store s: start of t is nothing in the state file, and latest in the program"
    )
    assert difference_text(Disagreement("s", "missing", None, "3 partitions")) == "store s: its changelog is missing"
    other = Disagreement("s", "segment.ms", None, "5", "7")
    assert difference_text(other) == "store s: segment.ms of its changelog is 7, and 5 in the program"
