"""``examples/inventory/faust``: the changelog of a Faust table is lost, rebuilt, and the worker continues with it."""

import json
import uuid

import pytest

from support.faust_tables import FOLDER, Worker, environment
from support.programs import Record
from support.streams import compacted_view
from support.streams_apps import wait_for

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

ITEMS = ("chair", "desk")


def movements(first, last):
    return [
        Record(f"shöp-{at % 5}".encode(), json.dumps({"item": ITEMS[at % 2], "quantity": at}).encode(), 1_700_000_000_000 + at)
        for at in range(first, last)
    ]


def stock(last):
    """Return what the shops have after the movements before the last."""
    return {f"shöp-{shop}": {ITEMS[item]: sum(range(last)[(shop + 5 * ((shop + item) % 2)) :: 10]) for item in (0, 1)} for shop in range(5)}


def held(cluster, topic):
    """Return what the table holds, with its partition; its timestamps are those of the worker's clock."""
    return {json.loads(key): (json.loads(entry.value), entry.partition) for key, entry in compacted_view(cluster.read(topic)).items()}


def process(cluster, prefix, folder, records):
    """Let a worker process records to the end, and close it."""
    with Worker(cluster.servers, prefix, folder):
        cluster.produce(f"{prefix}movements", records)
        ends = {(f"{prefix}movements", partition): high for partition, (_low, high) in cluster.ends(f"{prefix}movements").items() if high}
        wait_for("the worker to commit", lambda: cluster.committed(f"{prefix}inventory-faust") == ends)


def test_a_table_of_faust_comes_back(cluster, run_kops, tmp_path):
    environment()
    prefix = f"faust-{uuid.uuid4().hex[:6]}-"
    changelog = f"{prefix}inventory-faust-stock-changelog"
    cluster.create(f"{prefix}movements", 4)
    state_file = tmp_path / "state.yaml"
    text = (FOLDER / "state.yaml").read_text(encoding="utf-8")
    state_file.write_text(text.replace("inventory-faust", f"{prefix}inventory-faust").replace("topic: ", f"topic: {prefix}"))
    common = (state_file, "-B", cluster.servers)
    try:
        process(cluster, prefix, tmp_path, movements(0, 23))
        before = held(cluster, changelog)
        assert {shop: items for shop, (items, _partition) in before.items()} == stock(23)
        run_kops("state", "verify", *common).ok()
        shown = run_kops("changelog", "inspect", changelog, "--key", "json", "--value", "json", "-B", cluster.servers, "-o", "json")
        assert {row["key"] for row in shown.ok().json} == set(before)
        cluster.empty(changelog)
        assert run_kops("state", "verify", *common).code == 7  # keys in JSON, and none is left to compare
        run_kops("state", "rebuild", *common, "--yes", "--accept-doubtful").ok()
        assert held(cluster, changelog) == before
        process(cluster, prefix, tmp_path, movements(23, 40))
        assert {shop: items for shop, (items, _partition) in held(cluster, changelog).items()} == stock(40)
    finally:
        cluster.delete_all(cluster.topics(prefix))
