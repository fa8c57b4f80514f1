"""The buffer of suppress() behind a store: kops cannot compute it, but sees whether it holds all windows that are open."""

import shutil
import time

import pytest

from support import twins
from support.programs import Program, Record, Window
from support.streams import compacted_view

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

MINUTE = 60_000


def is_no_text(time_ms):
    """Whether the bytes of a time cannot be read as text, as UTF-8."""
    return any(byte > 0xC1 for byte in time_ms.to_bytes(8, "big")[5:])


TODAY = int(time.time() * 1000) // MINUTE * MINUTE
NOW = next(at for at in range(TODAY, 0, -MINUTE) if is_no_text(at) and is_no_text(at + MINUTE))
"""Recent: the broker deletes what is older than the retention of a changelog of windows."""
LOST, KEYS = 6, 10
TUMBLING = Program("count", "long", value="string", store="final", window=Window("window", MINUTE, grace=1000, suppress="closed"))
SESSIONS = Program("count", "long", value="string", store="visits", window=Window("session", 10_000, grace=1000, suppress="closed"))


@pytest.mark.parametrize("program", [TUMBLING, pytest.param(SESSIONS, marks=pytest.mark.long)])
def test_open_windows_whose_results_would_be_lost_are_counted_and_named(program, cluster, prefix, run_kops, tmp_path):
    twin = twins.make(cluster, program, prefix, tmp_path, "at_least_once", partitions=1)
    common = (twin.state_file, "-B", cluster.servers, "-o", "json")
    closed = [Record(b"closed%d" % at, b"x", NOW - 10 * MINUTE + at) for at in range(5)]
    opened = [Record(b"k%d" % at, b"x", NOW + at) for at in range(KEYS)]
    twins.process([twin], [*closed, *opened])
    sure = run_kops("state", "verify", *common).ok().json[0]
    assert (sure["verdict"], {finding["severity"] for finding in sure["findings"]}) == ("proven", {"note"}), sure
    sent = {key for key, _ in twin.output()}
    assert len(sent) == len(closed)

    buffer = f"{twin.program.application}-closed-store-changelog"
    keys = sorted(compacted_view(cluster.read(buffer)))
    assert len(keys) == KEYS
    cluster.produce(buffer, [Record(key, None, NOW) for key in keys[:LOST]])
    found = run_kops("state", "verify", *common)
    assert found.code == 7
    assert (found.json[0]["verdict"], found.json[0]["proven"]) == ("doubtful", sure["keys"])
    (lost,) = (finding for finding in found.json[0]["findings"] if finding["severity"] != "note")
    assert (lost["check"], lost["subject"]) == ("lost_buffer", buffer)
    reason = lost["summary"]
    assert f"{LOST} of {KEYS} open windows are not in {buffer}" in reason
    assert "k0 [" in reason
    assert f"and {LOST - 3} more" in reason

    shutil.rmtree(twin.state)
    twins.process([twin], [Record(b"later", b"x", NOW + 10 * MINUTE)])
    assert len({key for key, _ in twin.output()} - sent) == KEYS - LOST
