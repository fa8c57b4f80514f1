"""Approval by a person on a real (pseudo) terminal: the question is on the terminal, the data on stdout."""

import os
import pty
import select
import time

import pytest

from support.command_line import hear_interrupts
from support.patience import HANG_SECONDS

pytestmark = pytest.mark.broker

CTRL_C, CTRL_D = "\x03", "\x04"


@pytest.fixture
def answer(configured, kops_process):
    """Run kops on a terminal, type an answer when it asks; return exit code, stdout, and what the terminal showed."""

    def run(question, typed, *arguments):
        ours, theirs = pty.openpty()
        process = kops_process(*arguments, stdin=theirs, stderr=theirs, start_new_session=True, preexec_fn=take_terminal)
        os.close(theirs)
        shown = read_until(ours, question)
        os.write(ours, typed.encode())
        out, _ = process.communicate(timeout=HANG_SECONDS)
        shown += read_rest(ours)
        os.close(ours)
        return process.returncode, out, shown.replace("\r\n", "\n")

    return run


def take_terminal():
    """Make stdin the controlling terminal, so that Ctrl-C is a signal."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    hear_interrupts()


def readable(terminal):
    """Wait a little for something to read; poll, since select cannot take a descriptor beyond 1,023."""
    waiting = select.poll()
    waiting.register(terminal, select.POLLIN)
    return bool(waiting.poll(200))


def read_until(terminal, text):
    seen, deadline = "", time.monotonic() + HANG_SECONDS
    while text not in seen:
        assert time.monotonic() < deadline, seen
        if readable(terminal):
            seen += os.read(terminal, 65536).decode()
    return seen


def read_rest(terminal):
    seen = ""
    try:
        while readable(terminal) and (part := os.read(terminal, 65536)):
            seen += part.decode()
    except OSError:  # Linux: the other side is no longer open
        pass
    return seen


@pytest.fixture
def exists(run_kops):
    return lambda name: bool(run_kops("topics", "list", f"{name}*", "-o", "json").ok().json)


@pytest.fixture
def name(unique, configured, run_kops):
    name = unique()
    yield name
    run_kops("topics", "delete", name, "--if-exists", "--confirm", name)


def test_yes(answer, name, exists):
    code, out, shown = answer("[y/N]", "y\n", "topics", "create", name)
    assert code == 0
    assert f"create the topic {name}" in shown
    assert "partitions" in shown
    assert out.splitlines()[0].split() == ["TARGET", "STATUS", "VALUE"]
    assert "[y/N]" not in out
    assert exists(name)


@pytest.mark.parametrize("typed", ["n\n", "\n", CTRL_D])
def test_no(answer, name, exists, typed):
    code, out, shown = answer("[y/N]", typed, "topics", "create", name)
    assert (code, out) == (5, "")
    assert "kops: error: not approved\nhint: nothing was changed" in shown
    assert not exists(name)


def test_ctrl_c_at_the_question(answer, name, exists):
    code, out, shown = answer("[y/N]", CTRL_C, "topics", "create", name)
    assert (code, out) == (130, "")
    assert "interrupted; no plan was being carried out" in shown
    assert not exists(name)


def test_the_name_is_typed(answer, name, exists, run_kops):
    run_kops("topics", "create", name, "--yes").ok()
    question = f"Type {name} to continue"
    for typed in ("y\n", "\n", f"{name}x\n", CTRL_D):
        code, _, shown = answer(question, typed, "topics", "delete", name, "--yes")
        assert code == 5, shown
        assert exists(name)
    code, _, shown = answer(question, f"{name}\n", "topics", "delete", name)
    assert code == 0, shown
    assert not exists(name)


def test_a_quiet_question_still_shows_the_plan(answer, name):
    code, _, shown = answer("[y/N]", "n\n", "topics", "create", name, "-q")
    assert code == 5
    assert f"create the topic {name}" in shown


def test_no_question_when_the_answer_is_given(configured, name, kops_process):
    ours, theirs = pty.openpty()
    process = kops_process("topics", "create", name, "--yes", stdin=theirs, stderr=theirs)
    os.close(theirs)
    process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 0
    assert "[y/N]" not in read_rest(ours)
    os.close(ours)
