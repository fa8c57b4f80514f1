"""The settings that Connect workers get."""

from pathlib import Path

from kops.sandbox import cluster
from kops.sandbox.model import SASL_SSL, Node, Sandbox, Worker, load, save
from kops.sandbox.workers import ConnectCluster, discovery, worker_settings

WORKERS = (Worker(1, 21010), Worker(2, 21011))


def test_worker_settings_share_group_and_client_settings():
    client = {"bootstrap.servers": "127.0.0.1:9092", "security.protocol": "SASL_SSL"}
    made = ConnectCluster("x", Path("/x"), "x-connect", client, WORKERS, ("/a", "/b"), replicas=3)
    one, two = (worker_settings(made, worker) for worker in WORKERS)
    assert {name for name in one if one[name] != two[name]} == {"listeners", "rest.advertised.port"}
    assert (one["listeners"], one["plugin.path"]) == ("http://127.0.0.1:21010", "/a,/b")
    assert {one[f"{part}.storage.replication.factor"] for part in ("config", "offset", "status")} == {"3"}
    for prefix in ("", "producer.", "consumer.", "admin."):
        assert {name: one[f"{prefix}{name}"] for name in client} == client


def test_a_standalone_worker_has_no_group_and_keeps_offsets_in_a_file(tmp_path):
    made = ConnectCluster("x", tmp_path, "x-connect", {"bootstrap.servers": "127.0.0.1:9092"}, WORKERS[:1], standalone=True)
    settings = worker_settings(made, WORKERS[0])
    assert settings["offset.storage.file.filename"] == str(tmp_path / "worker-1" / "offsets")
    assert not {"group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic"} & set(settings)


def test_worker_scans_classes_only_without_manifests(tmp_path):
    assert discovery(["/nowhere", str(tmp_path)]) == "service_load"
    for known in ("connect-file-4.3.1", "debezium-connector-postgres-3.6.0.Final", ".fetching"):
        (tmp_path / known).mkdir()
    assert discovery([str(tmp_path)]) == "service_load"
    (tmp_path / "some-plugin-1.0").mkdir()
    assert discovery([str(tmp_path)]) == "hybrid_warn"
    (tmp_path / "some-plugin-1.0" / "connect-plugin-path-shim-1.0.0.jar").touch()
    assert discovery([str(tmp_path)]) == "service_load"
    (tmp_path / "debezium-connector-mysql-1.9.0.Final").mkdir()
    assert discovery([str(tmp_path)]) == "hybrid_warn"


def test_sandbox_remembers_connect_and_registry(tmp_path):
    plain = Sandbox(tmp_path, "x", "4.3.1", "id", (Node(1, 21001, 21002),), SASL_SSL)
    save(plain)
    assert (load(tmp_path).connect_urls, load(tmp_path).registry_url) == ((), None)
    wide = cluster.add(plain, connect_workers=2, registry=True, plugin_path=["/p"])
    assert load(tmp_path) == wide
    assert [part.name for part in cluster.parts_of(wide)] == ["broker 1", "worker 1", "worker 2", "registry"]
    assert cluster.add(wide, connect_workers=1) == wide  # it has more
    assert wide.context()["connect_urls"] == list(wide.connection().connect_urls) == list(wide.connect_urls)
    moved = cluster.move_ports(wide)
    assert not {part.port for part in cluster.parts_of(moved)} & {part.port for part in cluster.parts_of(wide)}
    assert (len(moved.workers), moved.plugin_path) == (2, ("/p",))
