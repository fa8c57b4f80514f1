"""Progress on stderr: a line that is rewritten on a terminal, plain lines in a pipe, never in the way."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from kops.output.guard import guarded_stderr, guarded_stdout
from kops.output.progress import Pace, StreamProgress, bar, describe_advance


class Closed(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize(
    ("done", "total", "rate", "sure", "text"),
    [
        (0, None, None, False, "0 records"),
        (1200, None, 400.0, True, "1,200 records, 400/s"),
        (1200, 5000, 400.0, True, "1,200 of 5,000 records, 400/s, ~10s left"),
        (1200, 5000, 400.0, False, "1,200 of 5,000 records, 400/s"),
        (120, 50_000, 40.0, True, "120 of 50,000 records, 40/s, ~21m left"),
        (120, 500_000, 4.0, True, "120 of 500,000 records, 4/s, ~34.7h left"),
        (4999, 5000, 400.0, True, "4,999 of 5,000 records, 400/s, ~1s left"),
        (5000, 5000, 1667.0, True, "5,000 of 5,000 records, 1,667/s"),
        (7, 5000, 0.0, True, "7 of 5,000 records, 0/s"),
    ],
)
def test_the_line(done, total, rate, sure, text):
    assert describe_advance(done, total, "records", rate, sure=sure) == text


@pytest.mark.parametrize(("done", "total", "full"), [(0, 95, 0), (47, 95, 9), (94, 95, 19), (95, 95, 20), (99, 95, 20)])
def test_the_bar(done, total, full):
    assert bar(done, total) == f"  [{'#' * full}{'.' * (20 - full)}]"
    assert bar(done, None) == bar(done, 0) == ""


def test_the_start_of_spark_says_nothing_about_the_time_left():
    pace = Pace()
    assert pace.at(30.0, 0, 601_455) == (None, False)
    assert pace.at(60.0, 600, 601_455) == (None, False)
    assert pace.at(61.0, 5_600, 601_455) == (5_000.0, False)
    assert pace.at(70.0, 50_600, 601_455) == (5_000.0, True)
    for second in range(71, 140):
        rate, sure = pace.at(float(second), 50_600 + 1_000 * (second - 70), 601_455)
    assert (rate, sure) == (1_000.0, True)


def test_a_tenth_is_enough_to_tell():
    pace = Pace()
    pace.at(0.0, 1, 100)
    assert pace.at(1.0, 11, 100) == (10.0, True)


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


@pytest.mark.parametrize("written", ["stdout", "stderr", "bytes"])
def test_the_line_is_cleared_before_anything_else_is_written(written, monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: float(next(now)))
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), write_through=True)) as out, redirect_stderr(io.StringIO()) as err:
        with guarded_stderr(), guarded_stdout(lambda: False):
            progress = StreamProgress(sys.stderr, terminal=True)
            progress.step("reading")
            progress.advance(1, 10, "records")
            assert not err.getvalue().endswith("\r\x1b[K")
            if written == "bytes":
                sys.stdout.buffer.write(b"done\n")
            else:
                getattr(sys, written).write("done\n")
            sys.stderr.write("last\n")
        assert err.getvalue().endswith("\x1b[K\r\x1b[Kdone\nlast\n" if written == "stderr" else "\x1b[K\r\x1b[Klast\n")
        assert out.buffer.getvalue() == (b"" if written == "stderr" else b"done\n")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_reader_that_has_gone_stops_nothing(terminal):
    progress = StreamProgress(Closed(), terminal=terminal)
    progress.step("reading")
    progress.advance(1, 10, "records")
