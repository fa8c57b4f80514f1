"""The assignor's bytes, where they are not whole; every version of them is held against the library in tests/streams."""

import pytest

from kops.core.errors import UndecodableRecord
from kops.formats.groups.streams_assignment import decode_assignment, decode_subscription

VERSION_2 = bytes.fromhex("00000002 00000001 00000000 00000000 00000000")


def test_an_assignment_is_read():
    found = decode_assignment(VERSION_2)
    assert [str(task) for task in found.active] == ["0_0"]
    assert found.standby == {}


@pytest.mark.parametrize("end", range(len(VERSION_2)))
def test_bytes_that_end_early_are_an_error(end):
    with pytest.raises(UndecodableRecord):
        decode_assignment(VERSION_2[:end])


@pytest.mark.parametrize("version", [0, 12, -1])
@pytest.mark.parametrize("decode", [decode_assignment, decode_subscription])
def test_unknown_versions_are_an_error(decode, version):
    with pytest.raises(UndecodableRecord, match=f"version {version} "):
        decode(version.to_bytes(4, "big", signed=True) + bytes(64))
