"""Notes on a terminal: lines fit, words and commands stay whole."""

import io

import pytest

from kops.output.colour import note_line, wrapped

WARNING = "warning: orders is being read by group billing: `kops topics describe orders-of-the-north` shows it"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")


def test_lines_fit_the_terminal_and_commands_stay_whole():
    assert wrapped(WARNING, Terminal()).split("\n") == [
        "warning: orders is being read by group",
        "  billing:",
        "  `kops topics describe orders-of-the-north`",
        "  shows it",
    ]


def test_lines_that_are_indented_continue_indented():
    text = f"short\n  settings  {'x' * 20} {'y' * 20}"
    assert wrapped(text, Terminal()) == f"short\n  settings  {'x' * 20}\n    {'y' * 20}"


def test_a_pipe_gets_lines_as_they_are():
    assert wrapped(WARNING, io.StringIO()) == note_line(WARNING, io.StringIO()) == WARNING
