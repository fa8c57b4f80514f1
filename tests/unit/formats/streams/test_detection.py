"""Guesses of store types. That they are right for what Kafka Streams writes is proven in tests/streams/test_formats_stores.py."""

import struct

from kops.core.models import TopicPartition
from kops.core.records.models import Record
from kops.formats.streams import store_types as types
from kops.formats.streams.detection import HIGH, LOW, MEDIUM, NAMED, detect
from support.streams_encoders import position_headers

TIME = 1_700_000_000_000
COMPACT = {"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}
WINDOWED = {"cleanup.policy": "compact,delete", "min.compaction.lag.ms": "0"}


def records(*pairs, headers=()):
    return [Record("t", 0, at, TIME + at, key, value, headers) for at, (key, value) in enumerate(pairs)]


def windowed(count, sequence=0):
    return [(b"k" + struct.pack(">qi", TIME - at, sequence), b"v") for at in range(count)]


def test_keys_that_happen_to_be_long_enough_are_no_windows():
    for key in (
        b"a text that is long enough",
        b"550e8400-e29b-41d4-a716-446655440000",
        struct.pack(">qq", 42, 7),
        struct.pack(">qq", 42, 0),
    ):
        guess = detect("app-s-changelog", COMPACT, records((key, b"v"), (key, b"v")))
        assert (guess.type, guess.confidence) == (types.KEY_VALUE, HIGH), key


def test_a_store_whose_settings_somebody_changed_is_known_by_its_bytes():
    guess = detect("app-s-changelog", COMPACT, records(*windowed(20)))
    assert guess.type == types.WINDOW
    assert guess.confidence in (MEDIUM, LOW)


def test_what_the_caller_says_counts_and_what_speaks_against_it_is_told():
    guess = detect("app-s-changelog", WINDOWED, records(*windowed(20)), named=types.SESSION)
    assert (guess.type, guess.confidence) == (types.SESSION, NAMED)
    assert any("0 of 20" in reason for reason in guess.reasons)


def test_tombstones_alone_leave_the_settings_to_speak():
    guess = detect("app-s-changelog", WINDOWED, records((b"k", None), (None, b"v")))
    assert (guess.type, guess.confidence) == (types.WINDOW, LOW)
    assert guess.alternatives == (types.SESSION,)


def test_versioned_stores_are_known_by_the_lag_of_their_compaction():
    settings = {"cleanup.policy": "compact", "min.compaction.lag.ms": "90000000"}
    guess = detect("app-s-changelog", settings, records((b"k", b"v")))
    assert (guess.type, guess.confidence) == (types.VERSIONED, HIGH)
    assert detect("app-s-changelog", {"cleanup.policy": "compact"}, records((b"k", b"v"))).confidence == LOW, "the lag is not known"


def test_faust_is_known_by_its_json():
    window = detect("app-s-changelog", WINDOWED, records((b'["k",[1700000000.0,1700000009.9]]', b"2")))
    assert window.type == types.FAUST_WINDOW
    assert detect("app-s-changelog", COMPACT, records((b'"k"', b'{"a":1,"__faust":{"ns":"shop.Order"}}'))).type == types.FAUST
    plain = detect("app-s-changelog", COMPACT, records((b'"k"', b"2")))
    assert types.FAUST in [plain.type, *plain.alternatives]


def test_positions_and_other_topics_are_told():
    headers = position_headers({TopicPartition("in", 0): 5})
    said = detect("app-s-changelog", COMPACT, records((b"k", b"v"), headers=headers)).reasons
    assert any("position of their input" in reason for reason in said)
    assert not any("Kafka Streams 4.3" in reason for reason in said)
    other = detect("orders", {"cleanup.policy": "delete"}, records((b"k", b"v")))
    assert any("not that of a changelog" in reason for reason in other.reasons)


def test_damaged_positions_do_not_stop_a_guess():
    damaged = (("v", b"\x00"), ("c", b"\x00\x00"))
    assert detect("app-s-changelog", COMPACT, records((b"k", b"v"), headers=damaged)).type == types.KEY_VALUE
