"""What suppress holds. golden/suppress.json is from the real libraries that wrote each version, see golden/SuppressGoldens.java."""

import json
from pathlib import Path

import pytest

from kops.core.errors import UndecodableRecord
from kops.formats.streams import suppression, window_keys
from kops.formats.streams.suppression import BufferedChange, RecordContext
from support.streams_encoders import encode_suppressed, suppressed_headers

GOLDEN = json.loads((Path(__file__).parent / "golden" / "suppress.json").read_text("utf-8"))
VERSIONS = {"2.1.1": 0, "2.2.1": 1, "2.3.1": 2, "2.4.0": 3}
"""What each release wrote; 2.4.0 said that it was version 2."""
LONG = 8


def of_release(release, *, windows):
    records = [case for case in GOLDEN if case["version"] == release and case["windows"] == windows]
    return [case for case in records if case["value"] is not None]


def headers(case):
    return tuple((name, None if value is None else bytes.fromhex(value)) for name, value in case["headers"])


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("release", VERSIONS)
def test_values_of_every_release_come_back(release, windows):
    version = VERSIONS[release]
    cases = of_release(release, windows=windows)
    assert len(cases) > 4
    for case in cases:
        assert suppression.version_of(headers(case)) == min(version, 2)
        change = suppression.decode(bytes.fromhex(case["value"]), suppressed_headers(version))
        assert encode_suppressed(change, version).hex() == case["value"]
        assert (change.context is None) == (version == 0)


@pytest.mark.parametrize("release", VERSIONS)
def test_the_same_changes_mean_the_same_in_every_release(release):
    changes = [
        suppression.decode(bytes.fromhex(case["value"]), suppressed_headers(VERSIONS[release]))
        for case in of_release(release, windows=False)
    ]
    first, second, third, fourth = changes[:4]
    assert (first.new, first.old, first.buffer_time_ms) == (b"a", None, 100)
    old = b"a" if release in ("2.3.1", "2.4.0") else None  # those before did not ask for old values
    assert (second.new, second.old, second.buffer_time_ms) == (b"b", old, 100)
    assert (third.new, third.old, third.buffer_time_ms) == (b"", None, 104)
    assert fourth.new is None
    if first.context:
        assert (second.context.topic, second.context.partition, second.context.offset, second.context.timestamp_ms) == ("in", 0, 1, 103)
        assert second.context.headers == (("h", b"\x01"), ("n", None))


def test_a_version_3_that_calls_itself_2_is_known_by_what_it_is():
    for case in of_release("2.4.0", windows=False):
        data = bytes.fromhex(case["value"])
        assert suppression.decode(data, headers(case)) == suppression.decode(data, suppressed_headers(3))


def test_windows_are_held_until_their_end():
    for release, version in VERSIONS.items():
        for case in of_release(release, windows=True):
            window = window_keys.decode_without_sequence(bytes.fromhex(case["key"]))
            change = suppression.decode(bytes.fromhex(case["value"]), suppressed_headers(version))
            assert window.key in (b"k", b"z", "ключ".encode())
            assert window.start_ms in (100, 300)
            assert change.buffer_time_ms == window_keys.end_of(window.start_ms, 10)
            assert len(change.new) == LONG


def test_what_is_no_version_is_refused():
    change = BufferedChange(b"new", b"old", b"old", 5, RecordContext(1, 2, "in", 3))
    for value in (b"\x00", b"\x04", b"\x03\x00", b"", None):
        with pytest.raises(UndecodableRecord, match="not known"):
            suppression.decode(encode_suppressed(change), (("v", value),))
    assert suppression.version_of((("v", b"\x01"), ("v", b"\x03"))) == 3, "the last header counts"
