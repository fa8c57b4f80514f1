"""``examples/prices/second-cluster.md``: the prices of one cluster sent to another, then only what is new; undo is refused."""

import contextlib

import pytest

from support.examples import EXAMPLES
from support.streams_apps import Cluster, without_offsets

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_prices_go_to_a_second_cluster_and_come_back_out(scene, second_broker, run_kops, broker):
    second, source, target = Cluster(second_broker.bootstrap_servers), scene.topic("prices", 3), f"{scene.prefix}-prices"
    for name, servers in (("sandbox", broker.bootstrap_servers), ("second", second.servers)):
        run_kops("context", "add", name, "--bootstrap-servers", servers).ok()
    folder = EXAMPLES / "prices"
    run_kops("-c", "sandbox", "records", "produce", source, "--file", folder / "three.txt", "--key-separator", "|").ok()
    send = ("-c", "sandbox", "replay", "run", source, "--to", target, "--to-context", "second")
    missing = run_kops(*send, "--yes")
    assert (missing.code, target in missing.err) == (5, True)
    run_kops("-c", "second", "topics", "create", target, "--partitions", "3", "--yes").ok()
    try:
        dry = run_kops(*send, "--dry-run", "-o", "json").ok().json
        assert (dry["context"], dry["arguments"]["preview"]["records"]) == ("second", 4)
        first = run_kops(*send, "--yes", "-o", "json").ok().json
        assert without_offsets(second.read(target)) == scene.read(source)
        ends = {at: high for at, (_, high) in scene.cluster.ends(source).items()}
        run_kops("-c", "sandbox", "records", "produce", source, "--file", folder / "fourth.txt", "--key-separator", "|").ok()
        (grown,) = [at for at, (_, high) in scene.cluster.ends(source).items() if high > ends[at]]
        new = run_kops(*send[:4], f"{source}:{grown}", *send[5:], "--range", f"{ends[grown]}..", "--yes", "-o", "json").ok().json
        assert [item["value"]["records"] for item in new["items"]] == [1]
        assert without_offsets(second.read(target)) == scene.read(source)
        refused = run_kops("-c", "second", "undo", new["journal_id"], "--confirm", target)
        assert (refused.code, "cannot be taken out" in refused.err) == (5, True)
        refused = run_kops("-c", "second", "undo", first["journal_id"], "--confirm", target)
        assert (refused.code, "1 record of others" in refused.err) == (5, True)
        assert len(second.read(target)) == 5
    finally:
        with contextlib.suppress(Exception):
            second.delete_all([target])
