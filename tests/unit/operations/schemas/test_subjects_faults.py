"""What a registry may answer beside what is asked for, from a small server that answers it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kops.config.connection import Connection
from kops.core.errors import AuthenticationFailed, AuthorizationFailed, NotFound, OperationFailed, Unreachable, UsageProblem
from kops.core.schemas.models import AVRO, Schema, kind_of, parse_reference
from kops.gateways.registry.client import IncompatibleSchema
from kops.gateways.registry.subjects import Subjects
from kops.operations.schemas import subjects as schemas

INT = Schema(AVRO, '"int"')


@pytest.fixture
def server():
    """A registry with given answers: ``server({"/subjects": (200, [])})``."""
    answers, asked = {}, []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            asked.append((self.command, self.path))
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = answers.get(self.path, (404, {"error_code": 40401, "message": "none"}))
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - as the server calls them

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
    thread.start()

    def subjects(found):
        answers.update(found)
        made = Subjects(Connection(("unused:9",), registry_url=f"http://user:secret@127.0.0.1:{running.server_port}/"))
        made.asked = asked
        return made

    yield subjects
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((200, "<html>welcome</html>"), OperationFailed, "answered 200 for the list of subjects"),
        ((200, {"a": 1}), OperationFailed, "answered 200"),
        ((502, "<html>bad gateway</html>"), OperationFailed, "answered 502"),
        ((500, {"error_code": 50001, "message": "store is down"}), OperationFailed, "answered 500 for the list of subjects: store is down"),
        ((401, "no"), AuthenticationFailed, "refused who we are"),
        ((403, "no"), AuthorizationFailed, "does not let us have the list of subjects"),
    ],
)
def test_answers_that_are_none(server, answer, error, words):
    with pytest.raises(error) as caught:
        server({"/subjects": answer}).names()
    assert words in caught.value.message
    assert "secret" not in caught.value.message


def test_a_schema_that_is_refused(server):
    found = server(
        {
            "/subjects/a/versions": (409, {"error_code": 409, "message": "x at /fields/1"}),
            "/subjects/b/versions": (422, {"error_code": 42201, "message": "no schema"}),
        }
    )
    with pytest.raises(IncompatibleSchema, match="x at /fields/1"):
        found.register("a", INT)
    with pytest.raises(UsageProblem, match="does not take the schema for b: no schema"):
        found.register("b", INT)
    assert found.newest("none") is None
    assert found.versions("none") == []


@pytest.mark.parametrize("messages", [["TYPE_MISMATCH"], []], ids=["explained", "unexplained"])
def test_kops_explains_what_the_registry_does_not(server, messages):
    version = {"subject": "s", "version": 3, "id": 9, "schema": '{"type": "string"}'}
    found = server(
        {
            "/config": (200, {"compatibilityLevel": "FULL"}),
            "/subjects/s/versions": (200, [1, 3]),
            "/subjects/s/versions/3": (200, version),
            "/schemas/ids/9": (200, version),
            "/compatibility/subjects/s/versions/3?verbose=true": (200, {"is_compatible": False, "messages": messages}),
        }
    )
    checked = schemas.checked(found, "s", found.whole(INT), INT)
    assert (checked.level, checked.own, checked.compatible) == ("FULL", False, False)
    assert checked.verdicts[0].messages == tuple(messages)
    own = ("string is written, and int is read (read with the new schema)", "int is written, and string is read (read with version 3)")
    assert checked.verdicts[0].problems == (() if messages else own)
    other = Schema("JSON", "{}")
    assert schemas.checked(found, "s", found.whole(other), other).verdicts[0].problems == ("it is json-schema, and the version is avro",)
    with pytest.raises(NotFound, match="has no version 2"):
        schemas.checked(found, "s", found.whole(INT), INT, against="2")
    assert ("GET", "/subjects/s/versions/1") not in found.asked  # FULL looks at the last one


def test_nobody_there():
    with pytest.raises(Unreachable):
        Subjects(Connection(("unused:9",), registry_url="http://127.0.0.1:9")).names()


def test_files_and_references():
    assert kind_of("a.avsc", "", None) == "AVRO"
    assert kind_of("-", '  // x\nsyntax = "proto3";', None) == "PROTOBUF"
    assert kind_of("a.json", '{"$schema": "x"}', None) == "JSON"
    assert kind_of("a.json", '{"type": "record"}', None) == "AVRO"
    assert kind_of("a.json", "{}", "json-schema") == "JSON"
    with pytest.raises(UsageProblem, match="does not tell"):
        kind_of("a.json", "{}", None)
    assert parse_reference("a.B=s:x:12").as_json() == {"name": "a.B", "subject": "s:x", "version": 12}
    for text in ("a.B", "a.B=s", "=s:1", "a=s:x"):
        with pytest.raises(UsageProblem, match="is not a valid reference"):
            parse_reference(text)
