"""Signals end a command as what they are, also where a library's C code puts an error of its own in their place."""

import os
import signal

import pytest
from confluent_kafka import Consumer

from kops.core.errors import ExitCode, Refused, Terminated
from kops.core.stops import STOPS, exit_code, kept_stops, stop_on_signals
from support.command_line import hear_interrupts

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def stopping():
    before = {number: signal.getsignal(number) for number in HANDLED}
    hear_interrupts()
    stop_on_signals()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Stopping:
    """A setting during whose conversion a signal arrives."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __str__(self) -> str:
        os.kill(os.getpid(), self._number)
        return "value"


def stopped_in_c(number: int) -> None:
    """Construct a consumer; confluent-kafka replaces the exception of a signal that arrives meanwhile."""
    Consumer({"group.id": "g", "client.id": Stopping(number)})


@pytest.mark.parametrize(
    ("number", "stop", "code"),
    [
        (signal.SIGINT, KeyboardInterrupt, ExitCode.INTERRUPTED),
        (signal.SIGTERM, Terminated, ExitCode.TERMINATED),
        (signal.SIGHUP, Terminated, ExitCode.TERMINATED),
    ],
)
def test_a_signal_that_c_code_hides_is_raised(number, stop, code):
    with pytest.raises(stop) as raised, kept_stops():
        stopped_in_c(number)
    assert isinstance(raised.value.__cause__, TypeError)
    assert exit_code(raised.value) is code


@pytest.mark.parametrize("error", [TypeError("own"), Refused("no")])
def test_an_error_without_a_signal_stays(error):
    with pytest.raises(type(error)) as raised, kept_stops():
        raise error
    assert raised.value is error


def test_a_signal_that_was_dealt_with_hides_no_later_error():
    with pytest.raises(Terminated), kept_stops():
        os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(TypeError, match="later"), kept_stops():
        raise TypeError("later")


def test_ignored_signals_stay_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop_on_signals()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    os.kill(os.getpid(), signal.SIGHUP)


def test_both_kinds_of_stop_are_no_exceptions():
    assert not any(issubclass(stop, Exception) for stop in STOPS)
