"""Keys of windows and sessions. That the bytes are Kafka Streams' own is proven in tests/streams/test_formats.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UndecodableRecord
from kops.formats.streams import session_keys, window_keys
from kops.formats.streams.session_keys import SessionKey
from kops.formats.streams.window_keys import WindowKey
from support.streams_encoders import encode_session_key, encode_window_key

TIMES = st.integers(0, 2**63 - 1)


def test_golden_keys_of_kafka_streams_4_3():
    """Written by TopologyTestDriver 4.3.0: key k, a window from 100, a session from 100 to 103."""
    window, session = bytes.fromhex("6b000000000000006400000000"), bytes.fromhex("6b00000000000000670000000000000064")
    assert window_keys.decode(window) == WindowKey(b"k", 100, 0)
    assert encode_window_key(WindowKey(b"k", 100)) == window
    assert window_keys.decode_without_sequence(window[:-4]) == WindowKey(b"k", 100, None)
    assert encode_window_key(WindowKey(b"k", 100, None)) == window[:-4]
    assert session_keys.decode(session) == SessionKey(b"k", 100, 103)
    assert encode_session_key(SessionKey(b"k", 100, 103)) == session


@given(st.binary(max_size=40), st.integers(0, 2**63 - 2), st.integers(-(2**31), 2**31 - 1) | st.none())
def test_windows_come_back(key, start, sequence):
    window = WindowKey(key, start, sequence)
    decode = window_keys.decode_without_sequence if sequence is None else window_keys.decode
    assert decode(encode_window_key(window)) == window


@given(st.binary(max_size=40), TIMES, TIMES)
def test_sessions_come_back(key, one, other):
    session = SessionKey(key, *sorted((one, other)))
    assert session_keys.decode(encode_session_key(session)) == session


@given(st.binary(max_size=40))
def test_bytes_are_decoded_and_written_again_or_refused(data):
    for decode, encode in (
        (window_keys.decode, encode_window_key),
        (window_keys.decode_without_sequence, encode_window_key),
        (session_keys.decode, encode_session_key),
    ):
        try:
            found = decode(data)
        except UndecodableRecord:
            continue
        assert encode(found) == data


@pytest.mark.parametrize(
    ("decode", "data", "says"),
    [
        (window_keys.decode, b"12345678901", "11 bytes are too few"),
        (window_keys.decode_without_sequence, b"", "0 bytes are too few"),
        (window_keys.decode, b"\xff" * 12, "begin at -1, before"),
        (window_keys.decode, b"\x7f" + b"\xff" * 7 + bytes(4), "at the end of time"),
        (session_keys.decode, b"1" * 15, "15 bytes are too few"),
        (session_keys.decode, b"\xff" * 16, "begin at -1, before"),
        (session_keys.decode, bytes(15) + b"\x01", "end at 0, before it begins at 1"),
    ],
)
def test_what_kafka_streams_could_not_read_is_refused(decode, data, says):
    with pytest.raises(UndecodableRecord, match=says):
        decode(data)


def test_the_end_of_a_window_stops_at_the_end_of_time():
    assert window_keys.end_of(100, 10) == 110
    assert window_keys.end_of(2**63 - 5, 10) == 2**63 - 1
