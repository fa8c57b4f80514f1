"""Where the application's key and a time stand in a changelog's key, and what the bytes of suppress tell of their keys."""

import struct

import pytest

from kops.core.records.models import Record
from kops.core.statefile import Form
from kops.core.times import Times
from kops.formats.streams.suppression import BufferedChange, RecordContext
from kops.operations.changelog.check import checker_named, ids_seen
from kops.operations.changelog.detect import detect_by
from kops.operations.changelog.layouts import LAYOUTS
from kops.operations.changelog.target import FrozenChangelog
from kops.operations.changelog.view import RowFilter
from support.streams_encoders import encode_suppressed, suppressed_headers

T = 1_700_000_000_000
# The keys are those that Kafka Streams itself wrote (`app`, String keys, times of around 100 ms; see the golden records of the formats).
KEYS = {
    "key-value": (b"k", b"k", None),
    "versioned": (b"k", b"k", None),
    "window": (bytes.fromhex("6b000000000000006400000000"), b"k", 100),
    "session": (bytes.fromhex("6b00000000000000670000000000000064"), b"k", 100),
    "join": (bytes.fromhex("6b000000000000006400000001"), b"k", 100),
    "outer-join": (bytes.fromhex("0000000000000064016b"), b"k", 100),
    "suppress-window": (bytes.fromhex("6b0000000000000064"), b"k", 100),
    "suppress-session": (bytes.fromhex("6b00000000000000670000000000000064"), b"k", 100),
    "join-buffer": (bytes.fromhex("0000000000000000646b00000001"), b"k", 100),
    "subscription": (bytes.fromhex("000000016b7071"), b"k", None),
}


@pytest.mark.parametrize("name", KEYS)
def test_the_key_of_the_application_is_found(name):
    key, inner, time = KEYS[name]
    assert LAYOUTS[name].inner(key) == inner
    assert LAYOUTS[name].time(key) == time


@pytest.mark.parametrize("name", [name for name, layout in LAYOUTS.items() if layout.prefix or layout.suffix or layout.sized])
def test_what_is_too_short_has_no_key_and_no_time(name):
    layout = LAYOUTS[name]
    assert layout.inner(b"ab") is None
    assert layout.time(b"ab") is None
    assert RowFilter(key=b"ab").fits_key(layout)(b"ab") is False
    assert RowFilter(windows=Times(0, None)).fits_key(layout)(b"ab") is False
    assert checker_named(name, *[Form("bytes")] * 3)(b"ab", None, ()) is not None


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1, 3])
def test_a_length_that_is_not_there_is_no_key(length):
    assert LAYOUTS["subscription"].inner(struct.pack(">i", length) + b"ab") is None


def test_windows_and_keys_are_wanted_together():
    fits = RowFilter(key=b"k", windows=Times(100, 101)).fits_key(LAYOUTS["window"])
    assert fits(KEYS["window"][0])
    assert not fits(b"x" + KEYS["window"][0][1:])
    assert not fits(bytes.fromhex("6b000000000000006500000000"))


def suppressed(key, time, buffer_time, offset=0):
    change = BufferedChange(b"2", b"1", None, buffer_time, RecordContext(time, 5, "in", 0))
    return Record("t", 0, offset, T, key, encode_suppressed(change), suppressed_headers(3))


@pytest.mark.parametrize(
    ("key", "name", "size"),
    [
        (b"key" + struct.pack(">q", T), "suppress-window", 60_000),
        (b"key" + struct.pack(">qq", T + 60_000, T), "suppress-session", None),
        (b"a key that is longer", "suppress", None),
        (b"", "suppress", None),
    ],
)
def test_what_suppress_holds_back_tells_its_keys(key, name, size):
    target = FrozenChangelog("app-KTABLE-SUPPRESS-STATE-STORE-0000000001-changelog", 1, {}, {}, ())
    detected = detect_by(target, [suppressed(key, T + 5, T + 60_000, at) for at in range(3)], None)
    assert (detected.layout.name, detected.window_size) == (name, size)


def test_a_named_type_is_taken_and_what_speaks_against_it_is_said():
    target = FrozenChangelog("app-s-changelog", 1, {}, {}, ())
    detected = detect_by(target, [Record("t", 0, 0, T, b"k", b"v")], "suppress-window")
    assert detected.layout.name == "suppress-window"
    assert detected.sentence.startswith("read as suppress-window, as named, although ")


def test_the_schema_ids_of_a_registry_are_seen_in_keys_and_values():
    key, value = b"\0\0\0\0\x07k", b"\0\0\0\0\x09v"
    windowed = key + bytes(8) + bytes(4)
    records = [(windowed, value, ()), (windowed, None, ()), (windowed, b"plain", ()), (windowed, b"\0\0\0\0\x0av", ())]
    assert ids_seen("window", (True, True, True), records) == [{7}, {9, 10}, set()]
    assert ids_seen("window", (False, True, False), records) == [set(), {9, 10}, set()]
