"""``examples/page-views``: hopping and tumbling windows and sessions of one topic are lost, or damaged, and come back."""

import struct
import time

import pytest

from support import twins
from support.broken_copies import LOCAL_STATES, assert_equal, break_and_rebuild
from support.examples import process
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

PARTITIONS = {"firefox": 0, "chrome": 1, "lynx": 1, "edge": 2}


@pytest.fixture
def base():
    """A time, in ms, at which windows of 10 s begin: a minute ago, since changelogs of windows forget what is older than a day."""
    return (int(time.time() * 1000) - 60_000) // 10_000 * 10_000


def views(base, *views):
    """Records of (browser, ms after the base)."""
    return {"views": [Record(name.encode(), b"/index", base + after, (), PARTITIONS[name]) for name, after in views]}


def windows(view, base):
    """Return the counts by browser, start and end (ms after the base) of window keys, whose end is not in the key."""
    found = {}
    for key, entry in view.items():
        start = struct.unpack(">q", key[-12:-4])[0] - base
        found[key[:-12].decode(), start] = struct.unpack(">q", entry.value)[0]
    return found


def sessions(view, base):
    found = {}
    for key, entry in view.items():
        end, start = struct.unpack(">qq", key[-16:])
        found[key[:-16].decode(), start - base, end - base] = struct.unpack(">q", entry.value)[0]
    return found


@LOCAL_STATES
def test_windows_and_sessions_come_back(copies, base, local_state):
    settings = {"processing.guarantee": "exactly_once_v2", "group.protocol": "streams"}
    options = {"inputs": ["views"], "outputs": ["views-counted"], "settings": settings}
    twin, broken = both = copies("page-views", "PageViewsApplication", 2, **options)
    first = views(
        base, ("firefox", 100), ("firefox", 2100), ("chrome", 500), ("lynx", 900), ("edge", 0), ("firefox", 4900),
        ("chrome", 12_000), ("lynx", 9_999),  # the second one's sessions and hopping windows are closed, its tumbling window is not
        ("edge", 20_000), ("edge", 4_000),  # too late for every window
    )  # fmt: skip
    process(both, first)
    hopping = windows(twin.view("hopping"), base)
    assert (hopping["firefox", 0], hopping["firefox", 2000], hopping["firefox", 4000]) == (3, 2, 1)
    assert windows(twin.view("tumbling"), base) == {
        ("firefox", 0): 3, ("chrome", 0): 1, ("lynx", 0): 2, ("edge", 0): 1, ("chrome", 10_000): 1, ("edge", 20_000): 1,
    }  # fmt: skip
    assert sessions(twin.view("sessions"), base) == {
        ("firefox", 100, 4900): 3, ("chrome", 500, 500): 1, ("chrome", 12_000, 12_000): 1, ("lynx", 900, 900): 1,
        ("lynx", 9_999, 9_999): 1, ("edge", 0, 0): 1, ("edge", 20_000, 20_000): 1,
    }  # fmt: skip
    earlier = twins.keep(broken.state)
    process(both, views(base, ("firefox", 7_000), ("chrome", 13_000), ("edge", 22_500), ("lynx", 15_900), ("edge", 21_000)))
    break_and_rebuild(broken, twin, local_state, earlier, options=["--accept-doubtful"])
    process(both, views(base, ("firefox", 8_000), ("chrome", 14_500), ("edge", 25_000), ("lynx", 16_000)))
    assert_equal(broken, twin)
