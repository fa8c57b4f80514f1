"""Connect and a registry whose answers are broken at random: every verb that asks them ends with an error or an answer, never a bug.

``KOPS_TEST_SEED`` makes other answers; ``make test-long`` makes many more.
"""

import http.server
import json
import os
import random
import threading
from contextlib import contextmanager
from urllib.parse import unquote

import pytest

from support.strangers import HERE, fill, shown

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("KOPS_TEST_SEED", "1"))
VERBS = [
    (verb, at)
    for verb, runs in HERE.items()
    for at in range(len(runs))
    if verb.startswith(("connect", "schemas")) and verb != "connect plugins add" and "--watch" not in runs[at].line
]
TASK = {"id": 0, "state": "FAILED", "worker_id": "w:1", "trace": "java.lang.Error: x\n\tat y"}
CONFIG = {"connector.class": "a.B", "name": "s", "topics": "orders", "tasks.max": "1"}
DEFINITION = {"name": "topics", "type": "LIST", "required": True, "default_value": None, "importance": "HIGH", "group": "g"}
VALUE = {"name": "topics", "value": "orders", "recommended_values": [], "errors": ["wrong"], "visible": True}
VERSION = {"subject": "s", "id": 1, "version": 1, "schema": '"int"', "schemaType": "AVRO", "references": []}
PLACE = {"kafka_topic": "orders", "kafka_partition": 0}


def connector(name, kind):
    status = {"name": name, "connector": {"state": "RUNNING", "worker_id": "w:1"}, "tasks": [TASK], "type": kind}
    return {"status": status, "info": {"name": name, "config": CONFIG, "tasks": [{"connector": name, "task": 0}], "type": kind}}


SINK, SOURCE = connector("s", "sink"), connector("source", "source")
ANSWERS = {
    "/": {"version": "4.3.1", "commit": "c", "kafka_cluster_id": "id"},
    "/connectors": {"s": SINK, "source": SOURCE},
    "/connectors/s": SINK["info"],
    "/connectors/s/status": SINK["status"],
    "/connectors/s/topics": {"s": {"topics": ["orders"]}},
    "/connectors/s/offsets": {"offsets": [{"partition": PLACE, "offset": {"kafka_offset": 7}}]},
    "/connectors/source": SOURCE["info"],
    "/connectors/source/status": SOURCE["status"],
    "/connectors/source/topics": {"source": {"topics": ["orders"]}},
    "/connectors/source/offsets": {"offsets": [{"partition": {"file": "a"}, "offset": {"position": 1}}]},
    "/connector-plugins": [{"class": "a.B", "type": "sink", "version": "1"}],
    "/connector-plugins/s/config": [DEFINITION],
    "/connector-plugins/a.B/config": [DEFINITION],
    "/connector-plugins/a.B/config/validate": {"name": "a.B", "error_count": 1, "configs": [{"definition": DEFINITION, "value": VALUE}]},
    "/admin/loggers": {"root": {"level": "INFO", "last_modified": 1}},
    "/subjects": ["s"],
    "/subjects/s": VERSION,
    "/subjects/s/versions": [1],
    "/subjects/s/versions/1": VERSION,
    "/subjects/s/versions/latest": VERSION,
    "/schemas/ids/1": VERSION,
    "/schemas/ids/1/versions": [{"subject": "s", "version": 1}],
    "/config": {"compatibilityLevel": "BACKWARD"},
    "/config/s": {"compatibilityLevel": "FULL"},
    "/compatibility/subjects/s/versions/1": {"is_compatible": False, "messages": ["no"]},
}
ODD = (
    *(None, True, False, 0, -1, 2**31, 2**63, 2**200, 1.5, "", "x", "\ud800", "1", [], {}, [None], [[]], {"": None}),
    *({"name": 1}, ["a", 1], "RUNNING", "9" * 5000, {"error_code": "x", "message": {}}),
)
DEEP = b"[" * 100_000


def broken(value, chance, rnd):
    """Return JSON with some of its parts replaced or missing."""
    if rnd.random() < chance:
        return rnd.choice(ODD)
    if isinstance(value, dict):
        kept = {key: broken(each, chance, rnd) for key, each in value.items() if rnd.random() > chance / 2}
        return kept | ({"more": rnd.choice(ODD)} if rnd.random() < chance else {})
    if isinstance(value, list):
        return [broken(each, chance, rnd) for each in value for _ in range(rnd.choice((1, 1, 1, 2)))]
    return value


def answer(path, rnd):
    """Return status, content type and bytes."""
    value = broken(ANSWERS.get(path, {"error_code": 40401, "message": "none"}), rnd.choice((0, 0.05, 0.2, 0.6)), rnd)
    status = rnd.choice((*[200] * 12, 201, 204, 302, 400, 404, 409, 422, 500, 999))
    data = json.dumps(value).replace("1.5", rnd.choice(("1.5", "NaN", "1e999", "-0"))).encode()
    if rnd.random() < 0.1:
        data = rnd.choice((b"", DEEP, rnd.randbytes(100), b"<html>", data[: len(data) // 2], b"\xff\xfe" + data, b'{"a":' * 400, b"null"))
    return status, rnd.choice(("application/json", "text/html", "application/json; charset=x", "")), data


@contextmanager
def service(rnd):
    """Run a server that answers so; yield its address, and what it answered."""
    said = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, kind, data = answer(unquote(self.path.partition("?")[0]), rnd)
            said.append((self.command, self.path, status, data[:300]))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if status != 204:
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _answer  # noqa: N815 - as the class asks for them

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", said
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("many", [4, pytest.param(400, marks=pytest.mark.long)])
@pytest.mark.parametrize(("verb", "at"), VERBS)
def test_no_answer_of_a_service_ends_as_a_bug(verb, at, many, home, tmp_path, monkeypatch):
    (tmp_path / "connector.yaml").write_text(json.dumps(CONFIG))
    (tmp_path / "other.yaml").write_text(json.dumps({**CONFIG, "tasks.max": "2"}))
    (tmp_path / "schema.avsc").write_text('"long"')
    run = HERE[verb][at]
    scene = {"evil": "s", "source": "source", "offset": '{"file":"a"}', "folder": tmp_path}
    for number in range(many):
        rnd = random.Random(f"{SEED} {verb} {at} {number}")
        with service(rnd) as (url, said):
            monkeypatch.setenv("KOPS_CONNECT_URLS", url)
            monkeypatch.setenv("KOPS_REGISTRY_URL", url)
            form = rnd.choice(([], ["-o", "json"], ["-o", "yaml"], ["-o", "csv"]))
            code, out, err = shown([*verb.split(), *fill(run.line, scene), "--timeout", "0.5", *form], run.typed)
            assert (code in range(8), "bug:" in err) == (True, False), (number, code, err, said, out)
