"""Quotas of the brokers that are set while a replay runs: it is slowed down, goes on, and nothing is missing or there twice."""

import threading
import time

import pytest

from support.programs import Record
from support.streams_apps import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.spark]

START, SIZE, COUNT, RATE = 1_760_000_000_000, 1000, 2000, 500
QUOTA, WINDOW_SECONDS = 100_000, 10
"""Bytes a second, of which brokers let pass what is due in ten seconds before they slow anybody down."""


@pytest.mark.parametrize("how", [(), ("--where", "offset >= 0", "--set", "headers[why]='slow'")])
def test_slowed_down_in_the_middle(scene, kops, unique, how):
    """Whole batches, and rows."""
    source, target, client = scene.topic("source"), scene.topic("target"), unique("client")
    values = [Record(b"k%d" % n, (b"%d-" % n).ljust(SIZE, b"v"), START + n, (("h", b"x"),), n % 2) for n in range(COUNT)]
    scene.cluster.produce(source, values)
    seen = []

    def sent():
        return sum(high for _, high in scene.cluster.ends(target).values())

    def slow_down():
        wait_for("it to send", lambda: sent() > 0)
        scene.cluster.slow_down(client, QUOTA)
        seen.extend((COUNT - sent(), time.monotonic()))
        scene.cluster.slow_down(client, 2 * QUOTA, "consumer_byte_rate")
        scene.cluster.slow_down(client, 5, "request_percentage")

    quotas = threading.Thread(target=slow_down)
    quotas.start()
    done = kops("replay", "run", source, "--to", target, "--rate", str(RATE), "--yes", "-X", f"client.id={client}", *how).ok()
    quotas.join()
    seconds = time.monotonic() - seen[1]
    assert f"proven: {COUNT:,} records" in done.err
    headers = (("h", b"x"), ("why", b"slow")) if how else (("h", b"x"),)
    assert scene.read(target) == [Record(r.key, r.value, r.timestamp, headers, r.partition) for r in scene.read(source)]
    due = seen[0] * SIZE / QUOTA - WINDOW_SECONDS
    assert seconds > due / 2, "the quotas held nothing back"
