"""``examples/inventory``: two instances; one dies with its disk and the changelog is lost; the other goes on alone as its twin."""

import json
import shutil
from collections import Counter

import pytest

from support.broken_copies import assert_equal, assert_same_stores, rebuild
from support.examples import process, wait_until_processed
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

SHOPS = [f"shop-{number}" for number in range(8)]
ITEMS = ("chair", "desk", "lampe à pied")
SERVERS = ("127.0.0.1:7001", "127.0.0.1:7002")


def movements(first, last):
    """Items that come and go, a movement without a quantity, and one without a value."""
    made = [
        Record(SHOPS[at % 8].encode(), json.dumps({"item": ITEMS[at % 3], "quantity": at % 7 - 2}).encode(), 1_700_000_000_000 + at)
        for at in range(first, last)
    ]
    odd = [Record(b"shop-1", b'{"item":"desk"}', 1_700_000_001_000), Record(b"shop-2", None, 1_700_000_001_000)]
    return {"movements": [*made, *odd]}


def test_an_instance_dies_and_the_stock_comes_back(copies):
    settings = {"processing.guarantee": "at_least_once", "session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}
    twin, broken = copies("inventory", "InventoryApplication", 2, inputs=["movements"], outputs=["stock-levels"], settings=settings)
    process([twin], movements(0, 40))
    broken.start(application_server=SERVERS[0])
    with broken.second_instance(application_server=SERVERS[1]) as second:
        broken.host.wait(broken.host_name, "READY")
        broken.produce(movements(0, 40))
        wait_until_processed(broken)
        located = {shop: broken.host.locate(broken.host_name, "stock", shop) for shop in SHOPS}
        assert {server for _partition, server in located.values()} == set(SERVERS)
        for shop in SHOPS[:3]:
            (answer,) = broken.kops("streams", "describe", broken.application, "--key", shop, "-o", "json").ok().json
            assert (answer["partition"], answer["active"]["application_server"]) == located[shop]
        second.kill()
        broken.host.stop(broken.host_name)
        shutil.rmtree(broken.folder / "second")
        shutil.rmtree(broken.state)
        broken.cluster.empty(broken.changelogs["stock"])
        occupied = broken.kops("state", "rebuild", broken.state_file, "--yes")
        assert (occupied.code, broken.view("stock")) == (5, {}), occupied
    rebuild(broken, options=["--wait-empty", "60s"])
    assert_same_stores(broken, twin)
    process([twin, broken], movements(40, 64))
    assert_equal(broken, twin)
    pieces = Counter()
    for at in range(64):
        pieces[SHOPS[at % 8].encode(), ITEMS[at % 3]] += at % 7 - 2
    assert pieces == {
        (shop, item): count for shop, entry in broken.view("stock").items() for item, count in json.loads(entry.value).items()
    }
