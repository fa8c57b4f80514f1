"""``kops cluster export``, ``diff`` and ``apply``: a folder that says what a cluster has, and one plan that makes it so."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
import yaml

from kops.operations.folder.kinds import KINDS
from support.patience import HANG_SECONDS
from support.topics import body_of

pytestmark = pytest.mark.broker


@pytest.fixture
def folder(tmp_path):
    """A folder of one file: call it with the documents of ``topics.yaml``, and what the manifest says."""

    def write(*documents, **manifest):
        (tmp_path / "topics.yaml").write_text("---\n".join(json.dumps(each) + "\n" for each in documents), encoding="utf-8")
        (tmp_path / "manifest.yaml").write_text(json.dumps({"version": 1, **manifest}), encoding="utf-8")
        return tmp_path

    return write


def sizes(cluster, prefix):
    return {name.removeprefix(prefix): count for name, count in cluster.topics(prefix).items()}


def test_what_is_exported_does_not_differ_and_is_made_again(kops, topic, topics, unique, tmp_path):
    name = topic(name=unique("shop"), partitions=3, config={"retention.ms": "70000", "cleanup.policy": "compact,delete"})
    out = tmp_path / "made" / "here"
    shown = kops("cluster", "export", out, "-o", "json").ok().json
    assert {row["kind"] for row in shown} == {kind.name for kind in KINDS}
    assert (out / "topics.yaml").stat().st_mode & 0o077 == 0
    documents = {each["name"]: each for each in yaml.safe_load_all((out / "topics.yaml").read_text())}
    assert documents[name] == {
        "name": name,
        "partitions": 3,
        "replication_factor": 1,
        "config": {"cleanup.policy": "compact,delete", "retention.ms": "70000"},
    }
    assert not any(each.startswith("__") for each in documents)
    assert kops("cluster", "export", out).code == 2
    kops("cluster", "export", out, "--replace").ok()
    (out / "topics.yaml").write_text(yaml.safe_dump(documents[name]))
    assert kops("cluster", "diff", out, "-o", "json").ok().json == []
    topics("delete", name, "--confirm", name).ok()
    assert kops("cluster", "diff", out).code == 1
    kops("cluster", "apply", out, "--yes").ok()
    assert kops("cluster", "diff", out).code == 0
    assert len(body_of(topics, name)["partitions"]) == 3


def test_pruning_takes_only_what_the_manifest_owns(kops, topic, cluster, broker, unique, folder):
    prefix = unique("p")
    topic(name=f"{prefix}-kept"), topic(name=f"{prefix}-gone"), topic(name=f"{prefix}-app-totals-changelog")
    other = topic(name=unique("other"))
    declared = {"name": f"{prefix}-kept", "partitions": 2}
    refused = kops("cluster", "apply", folder(declared), "--prune", "--yes")
    assert (refused.code, "owner: shop" in refused.err) == (2, True)
    assert kops("cluster", "apply", folder(declared, owner="shop", owns={"topics": ["*"]}), "--prune", "--yes").code == 2
    owned = folder(declared, owner="shop", owns={"topics": [f"{prefix}-*"]})
    asked = kops("cluster", "apply", owned, "--prune", "--yes")
    assert (asked.code, f"--confirm {broker.bootstrap_servers}" in asked.err) == (5, True)
    applied = kops("cluster", "apply", owned, "--prune", "--confirm", broker.bootstrap_servers, "-o", "json").ok()
    assert [item["target"] for item in applied.json["items"]] == [f"topic {prefix}-kept", f"topic {prefix}-gone"]
    assert sizes(cluster, prefix) == {"-kept": 2, "-app-totals-changelog": 1}
    assert other in cluster.topics(other)
    kops("undo", applied.json["journal_id"], "--yes").ok()
    assert sizes(cluster, prefix) == {"-kept": 2, "-gone": 1, "-app-totals-changelog": 1}


def test_a_part_that_was_overtaken_stops_all_of_it(kops, topic, cluster, unique, folder, tmp_path):
    prefix = unique("m")
    topic(name=f"{prefix}-grows")
    made = folder({"name": f"{prefix}-new"}, {"name": f"{prefix}-grows", "partitions": 2})
    kops("cluster", "apply", made, "--dry-run", "--plan-out", tmp_path / "plan.json").ok()
    kops("topics", "add-partitions", f"{prefix}-grows", "-p", "3", "--yes").ok()
    refused = kops("apply", tmp_path / "plan.json", "--yes")
    assert refused.code == 5
    assert sizes(cluster, prefix) == {"-grows": 3}


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("topic.yaml", "name: a", "is of no kind that kops applies"),
        ("manifest.yaml", "owner: a\nownes: {}", "ownes is not a field of a manifest (owns?)"),
        ("manifest.yaml", "owns: {topic: [a]}", "owns.topic is not a kind of thing here"),
        ("manifest.yaml", "version: 2", "version is 2"),
        ("topics.yaml", "nam: a", "nam is not a field of a topic"),
        ("connectors.yaml", "name: a\nconnector.class: B", "cannot be compared: the context has no connect_urls"),
    ],
)
def test_a_folder_that_cannot_be_read_is_refused_by_name(kops, folder, file, text, said):
    made = folder({"name": "kops-never-made"})
    (made / file).write_text(text)
    for verb in ("diff", "apply"):
        refused = kops("cluster", verb, made)
        assert refused.code == 2
        assert said.partition(" (")[0] in refused.err


def test_schemas_come_with_what_they_refer_to_and_go_before_it(run_kops, broker, registry, unique, tmp_path):
    address, order = unique("address"), unique("a-order")  # sorted before what it refers to
    run_kops("context", "add", "here", "--bootstrap-servers", broker.bootstrap_servers, "--registry-url", registry.url).ok()

    def kops(*arguments):
        return run_kops("cluster", *arguments, "-c", "here")

    def there():
        names = requests.get(f"{registry.url}/subjects", timeout=HANG_SECONDS).json()
        return {name for name in (address, order) if name in names}

    fields = [{"name": "to", "type": "shop.Address"}, {"name": "n", "type": "int", "default": 0}]
    text = [json.dumps({"type": "record", "name": "shop.Order", "fields": fields[:count]}) for count in (1, 2)]
    refers = [{"name": "shop.Address", "subject": address, "version": 1}]
    documents = [
        {"subject": order, "versions": [{"type": "avro", "schema": one, "references": refers} for one in text]},
        {
            "subject": address,
            "compatibility": "FULL",
            "versions": [{"type": "avro", "schema": json.dumps({"type": "record", "name": "shop.Address", "fields": []})}],
        },
    ]
    file = tmp_path / "in" / "schemas.yaml"
    file.parent.mkdir()

    def declare(*some, **manifest):
        file.write_text(yaml.safe_dump_all(some))
        file.with_name("manifest.yaml").write_text(yaml.safe_dump(manifest))
        return file.parent

    made = declare(*documents)
    assert [row["action"] for row in kops("diff", made, "-o", "json").json] == ["set", "register", "register", "register"]
    kops("apply", made, "--yes").ok()
    assert kops("diff", made).code == 0
    kops("export", tmp_path / "out").ok()
    found = {one.get("subject"): one for one in yaml.safe_load_all((tmp_path / "out" / "schemas.yaml").read_text())}
    assert [found[order], found[address]] == documents
    wrong = {"type": "avro", "schema": '{"type": "record", "name": "shop.Address", "fields": [{"name": "z", "type": "int"}]}'}
    refused = kops("apply", declare({**documents[1], "versions": [*documents[1]["versions"], wrong]}), "--yes")
    assert (refused.code, "FULL" in refused.err) == (5, True), refused.err
    nowhere = {"type": "avro", "schema": text[0], "references": [{**refers[0], "subject": unique("none")}]}
    refused = kops("apply", declare({"subject": unique("s"), "versions": [nowhere]}), "--yes")
    assert (refused.code, "versions[0].references[0] leads nowhere" in refused.err) == (2, True)
    refused = kops("apply", declare({"subject": unique("s"), "versions": [{"type": "avro", "schema": "{"}]}), "--yes")
    assert (refused.code, f"{file}: versions[0].schema cannot be" in refused.err) == (2, True)
    owned = declare({"compatibility": "NONE"}, owner="shop", owns={"schemas": [address, order]})
    kops("apply", owned, "--prune", "--confirm", "here").ok()
    assert there() == set()
    done = kops("apply", declare(*documents), "--yes", "-o", "json").ok().json
    assert there() == {address, order}
    run_kops("undo", done["journal_id"], "--confirm", "here", "-c", "here").ok()
    assert there() == set()


@pytest.fixture
def moded(registry):
    """The registry with modes, as Confluent's has them and it has not: what it says of all else is its own."""
    modes: dict[str, str] = {"/mode": "READWRITE"}

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            data = self.rfile.read(int(self.headers.get("content-length", 0)))
            path, found = self.path.removeprefix("/apis/ccompat/v7"), None
            if path.startswith("/mode"):
                if self.command == "PUT":
                    modes[path] = json.loads(data)["mode"]
                found = (200, {"mode": modes[path]}) if path in modes else (404, {"error_code": 40409, "message": "no mode"})
                if self.command == "DELETE":
                    modes.pop(path)
            elif self.command in ("POST", "DELETE") and path.startswith("/subjects/") and "/versions" in path:
                mode = modes.get(f"/mode/{path.split('/')[2]}", modes["/mode"])
                found = (422, {"error_code": 42205, "message": f"in {mode} mode"}) if mode != "READWRITE" else None
            if found is None:
                url = registry.url.removesuffix("/apis/ccompat/v7") + self.path
                real = requests.request(self.command, url, data=data, headers={"content-type": "application/json"}, timeout=HANG_SECONDS)
                status, body = real.status_code, real.content
            else:
                status, body = found[0], json.dumps(found[1]).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

        def log_message(self, *_arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/apis/ccompat/v7", modes
    server.shutdown()
    server.server_close()


def test_modes_numbers_and_subjects_that_refer_to_each_other(run_kops, broker, registry, moded, unique, tmp_path):
    """A registry takes such a circle: its later version refers to what refers to its earlier one."""
    (url, modes), p, q = moded, unique("p"), unique("q")
    run_kops("context", "add", "here", "--bootstrap-servers", broker.bootstrap_servers, "--registry-url", url).ok()
    run_kops("context", "add", "bare", "--bootstrap-servers", broker.bootstrap_servers, "--registry-url", registry.url).ok()

    def record(name, *fields):
        return json.dumps({"type": "record", "name": name, "fields": [{"name": "f", "type": one} for one in fields]})

    def ask(method, path, body=None):
        answer = requests.request(method, f"{registry.url}{path}", json=body, timeout=HANG_SECONDS)
        return answer.json() if answer.content else None

    registry.register(p, record("P"))
    registry.register(q, record("Q", "P"), references=[{"name": "P", "subject": p, "version": 1}])
    registry.register(p, record("Dropped"))
    ask("DELETE", f"/subjects/{p}/versions/2")
    registry.register(p, record("P3", "Q"), references=[{"name": "Q", "subject": q, "version": 1}])
    registry.register(q, record("Q2", "P3"), references=[{"name": "P3", "subject": p, "version": 3}])
    modes |= {"/mode": "READONLY_OVERRIDE", f"/mode/{q}": "READONLY", f"/mode/{p}": "READWRITE"}

    def folder(verb, made, *more, context="here"):
        return run_kops("cluster", verb, made, *more, "-c", context)

    folder("export", tmp_path / "all").ok()
    file = tmp_path / "in" / "schemas.yaml"
    file.parent.mkdir()
    documents = list(yaml.safe_load_all((tmp_path / "all" / "schemas.yaml").read_text()))
    assert documents[0]["mode"] == "READONLY_OVERRIDE"
    chosen = {one["subject"]: one for one in documents[1:] if one["subject"] in (p, q)}
    assert {name: (one["mode"], [each.get("version") for each in one["versions"]]) for name, one in chosen.items()} == {
        p: ("READWRITE", [None, 3]),
        q: ("READONLY", [None, None]),
    }
    for one in chosen.values():  # this registry's own, which it takes of no subject that does not exist
        assert one.pop("compatibility") == "NONE"
    file.write_text(yaml.safe_dump_all(chosen.values()))
    assert folder("diff", file.parent).code == 0
    bare = folder("apply", file.parent, "--yes", context="bare")
    assert (bare.code, f"{q} is declared READONLY, and the registry has no modes" in bare.err) == (2, True), bare.err

    file.write_text(file.read_text().replace(p, p := unique("p")).replace(q, q := unique("q")))  # as on an empty registry
    modes.clear()
    modes["/mode"] = "READONLY"
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "schemas.yaml").write_text(yaml.safe_dump({"subject": q, "versions": [{"type": "avro", "schema": record("Q")}]}))
    shut = folder("apply", tmp_path / "shut", "--yes")
    assert (shut.code, f"the registry is READONLY, so no schema of {q}" in shut.err) == (5, True), shut.err
    modes["/mode"] = "READWRITE"
    done = folder("apply", file.parent, "--yes", "-o", "json").ok()
    assert f"version 3 of {p} has another number here: 2" in done.err
    assert ask("GET", f"/subjects/{q}/versions/2")["references"] == [{"name": "P3", "subject": p, "version": 2}]
    assert (modes[f"/mode/{p}"], modes[f"/mode/{q}"]) == ("READWRITE", "READONLY")
    assert folder("diff", file.parent).code == 0
    run_kops("undo", done.json["journal_id"], "--confirm", "here", "-c", "here").ok()
    assert (ask("GET", f"/subjects/{p}/versions")["error_code"], modes) == (40401, {"/mode": "READWRITE"})


def test_what_cannot_be_made_so_differs(kops, topic, unique, folder):
    name = topic(name=unique("shrinks"), partitions=3)
    made = folder({"name": name, "partitions": 2})
    differs = kops("cluster", "diff", made, "-o", "json")
    assert (differs.code, [(row["target"], row["action"]) for row in differs.json]) == (1, [(f"topic {name}", "cannot")])
    assert "1 difference that cannot be changed here" in kops("cluster", "apply", made, "--yes").ok().err
