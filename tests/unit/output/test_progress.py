"""Progress on stderr: a line that is rewritten on a terminal, plain lines in a pipe, never in the way."""

import io

import pytest

from kops.output.progress import StreamProgress, describe_advance


class Closed(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize(
    ("done", "total", "seconds", "text"),
    [
        (0, None, 0, "0 records, 0/s"),
        (1200, None, 3, "1,200 records, 400/s"),
        (1200, 5000, 3, "1,200 of 5,000 records, 400/s, 10 s left"),
        (120, 5000, 3, "120 of 5,000 records, 40/s"),
        (120, 5000, 30, "120 of 5,000 records, 4/s, 1220 s left"),
        (5000, 5000, 3, "5,000 of 5,000 records, 1,667/s"),
    ],
)
def test_the_line(done, total, seconds, text):
    assert describe_advance(done, total, "records", seconds) == text


def test_steps_in_a_pipe_are_plain_lines():
    stream = io.StringIO()
    progress = StreamProgress(stream, terminal=False)
    progress.step("reading orders")
    progress.advance(1, 10, "records")
    progress.step("writing")
    assert stream.getvalue() == "reading orders ...\nwriting ...\n"


def test_a_terminal_line_is_cleared_before_the_next_step(monkeypatch):
    stream, now = io.StringIO(), iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: float(next(now)))
    progress = StreamProgress(stream, terminal=True)
    progress.step("reading")
    progress.advance(1, 10, "records")
    progress.step("writing")
    assert stream.getvalue().startswith("reading ...\n\r  1 of 10 records")
    assert "\x1b[K\r\x1b[Kwriting ...\n" in stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_reader_that_has_gone_stops_nothing(terminal):
    progress = StreamProgress(Closed(), terminal=terminal)
    progress.step("reading")
    progress.advance(1, 10, "records")
