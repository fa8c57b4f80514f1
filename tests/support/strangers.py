"""What strangers may write, and what of it must never be seen: for the tests that drive every verb of kops with hostile text."""

import http.server
import io
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import click
import pytest

from kops.cli.frame.main import cli, main

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""C0 but line ends and tabs, DEL, C1, marks of direction, what has no width, separators of lines, surrogates."""
STEERING = re.compile("\r\x1b\\[K|\r(?=  )|\x1b\\[K")
"""With this kops rewrites its own line of progress, on a terminal only."""
FORGED = "kops: done; journal 1"
"""A line that kops itself might say."""
HOSTILE = (
    "x\x1b[1A\x1b[2K"  # a line up, and erased
    "\x1b]52;c;cm0=\x07"  # the clipboard, ended by BEL
    "\x1b]8;;http://127.0.0.1/\x1b\\click\x1b]8;;\x1b\\"  # a link
    "\x9b2J\x85"  # CSI and NEL in one character each
    "\u202e\u2066\u200b\u2028\ufeff"
    "\b\x7f\t\r"
)
EVIL = f"{HOSTILE}\n{FORGED}"
SOURCE = f"{EVIL}-source"
SEEN = re.compile(r"x\\+(x1b|u001b|e)\[1A")
"""How the text begins where it is written out: for people, in JSON (once more where it is an escape already), in YAML."""


@dataclass(frozen=True)
class Run:
    """A command line that shows what strangers wrote.

    :param line: words; ``{name}`` is replaced from the scene after it is split
    :param typed: what is typed on the terminal
    :param seen: whether the hostile text must be there, written out; False where only part of it, or none, may be
    :param lines: whether it is a log, or data as they are, whose lines are shown as lines
    :param json: whether there is JSON of it
    """

    line: str = ""
    typed: str = ""
    seen: bool = True
    lines: bool = False
    json: bool = True


def every_verb(command: click.Command = cli, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Give the path and the command of every verb of kops."""
    if isinstance(command, click.Group):
        context = click.Context(command, **cli.context_settings)
        for verb in command.list_commands(context):
            found = command.get_command(context, verb)
            assert found is not None
            yield from every_verb(found, f"{name} {verb}".strip())
    else:
        yield name, command


def fill(line: str, scene: dict[str, Any]) -> list[str]:
    """Return the words of a :class:`Run`, filled from the scene."""
    return [word.format(**scene) for word in line.split()]


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def shown(arguments: list[str], typed: str, stream: type[io.TextIOWrapper] = io.TextIOWrapper) -> tuple[int, str, str]:
    """Run kops; return its exit code, stdout and stderr."""
    streams = [stream(io.BytesIO(given), encoding="utf-8", write_through=True) for given in (typed.encode(), b"", b"")]
    with pytest.MonkeyPatch.context() as patch:
        for name, one in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, one)
        code = main(arguments)
        out, err = (one.buffer.getvalue().decode() for one in streams[1:])
    return code, out, err


def assert_harmless(
    arguments: list[str], *, typed: str = "", seen: bool = True, lines: bool = False, as_json: bool = True, piped: bool = True
) -> None:
    """Run kops on a terminal and in a pipe, for people and as JSON: nothing of a stranger acts, none of its lines passes for one of kops.

    :param seen: whether the hostile text must be there, written out
    :param lines: whether text of several lines is shown as lines
    :param as_json: whether there is JSON
    :param piped: whether it is run for people in a pipe too, where data are as they are
    """
    ways = [((), _Terminal), *([((), io.TextIOWrapper)] if piped else []), *([(("-o", "json"), io.TextIOWrapper)] if as_json else [])]
    everything = ""
    for form, stream in ways:
        terminal = stream is _Terminal
        code, out, err = shown([*arguments, *form], typed if terminal else "", stream)
        report = f"{arguments} {form} ended with {code}\n--- stdout\n{out}\n--- stderr\n{err}"
        assert "bug:" not in err, report
        for text in (out, STEERING.sub("", err) if terminal else err):
            assert not ACTING.search(text), report
            assert lines or not any(line.startswith(FORGED) for line in text.splitlines()), report
        everything += out + err
        if form and out:
            _parsed(out)
    assert not seen or SEEN.search(everything), everything


def _parsed(out: str) -> None:
    """Parse JSON: one value, or one a line."""
    try:
        json.loads(out)
    except ValueError:
        for line in out.splitlines():
            json.loads(line)


@contextmanager
def hostile_server(routes: Callable[[str, str], tuple[int, Any]]) -> Iterator[str]:
    """Answer HTTP requests; yield the address.

    :param routes: gives status and JSON for a method and a path, decoded and without its query
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = routes(self.command, unquote(self.path.partition("?")[0]))
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _answer  # noqa: N815 - as the class asks for them

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


TRACE = f"org.apache.kafka.connect.errors.ConnectException: {EVIL}\n\tat x\nCaused by: java.io.IOException: {EVIL}\n\tat y\n"
STATUS = {
    "name": EVIL,
    "type": "sink",
    "connector": {"state": "FAILED", "worker_id": EVIL, "trace": TRACE},
    "tasks": [{"id": 0, "state": "FAILED", "worker_id": EVIL, "trace": TRACE}],
}
INFO = {"name": EVIL, "type": "sink", "config": {"connector.class": EVIL, "name": EVIL, EVIL: EVIL, "topics": "t"}, "tasks": []}
SETTING = {"name": EVIL, "type": EVIL, "required": True, "default_value": EVIL, "importance": EVIL, "group": EVIL, "documentation": EVIL}
SCHEMA = json.dumps({"type": "record", "name": "R", "doc": EVIL, "fields": [{"name": "a", "type": "string", "doc": EVIL}]})


def hostile_connect(method: str, path: str) -> tuple[int, Any]:
    """Answer as a Connect whose connectors, plugins and loggers were named by strangers; every change fails with their words."""
    if method != "GET":
        refused = {"definition": {"name": EVIL}, "value": {"name": EVIL, "value": EVIL, "errors": [EVIL]}}
        validated = {"error_count": 1, "configs": [refused]}
        return (200, validated) if path.endswith("/validate") else (500, {"error_code": 500, "message": EVIL})
    known = {
        "/": {"version": EVIL, "commit": EVIL, "kafka_cluster_id": EVIL},
        "/connectors": {
            EVIL: {"status": STATUS, "info": INFO},
            SOURCE: {"status": {**STATUS, "type": "source"}, "info": {**INFO, "type": "source"}},
        },
        f"/connectors/{EVIL}": INFO,
        f"/connectors/{EVIL}/status": STATUS,
        f"/connectors/{EVIL}/topics": {EVIL: {"topics": [EVIL]}},
        f"/connectors/{SOURCE}": {**INFO, "type": "source"},
        f"/connectors/{SOURCE}/status": {**STATUS, "type": "source"},
        f"/connectors/{SOURCE}/offsets": {"offsets": [{"partition": {EVIL: EVIL}, "offset": {EVIL: EVIL}}]},
        "/connector-plugins": [{"class": EVIL, "type": "sink", "version": EVIL}],
        f"/connector-plugins/{EVIL}/config": [SETTING],
        "/admin/loggers": {EVIL: {"level": EVIL, "last_modified": 1}},
    }
    return (200, known[path]) if path in known else (404, {"error_code": 404, "message": EVIL})


def hostile_registry(method: str, path: str) -> tuple[int, Any]:
    """Answer as a registry whose subjects and schemas were written by strangers; it refuses every change with their words."""
    version = {"subject": EVIL, "id": 1, "version": 1, "schema": SCHEMA, "schemaType": "AVRO"}
    if path.startswith("/compatibility"):
        return 200, {"is_compatible": False, "messages": [EVIL]}
    if method != "GET":
        return (404, {"error_code": 40403, "message": EVIL}) if path.count("/") == 2 else (500, {"error_code": 500, "message": EVIL})
    known = {
        "/subjects": [EVIL],
        f"/subjects/{EVIL}/versions": [1],
        f"/subjects/{EVIL}/versions/1": version,
        f"/subjects/{EVIL}/versions/latest": version,
        "/schemas/ids/1": version,
        "/schemas/ids/1/versions": [{"subject": EVIL, "version": 1}],
        f"/config/{EVIL}": {"compatibilityLevel": EVIL},
        "/config": {"compatibilityLevel": EVIL},
    }
    return (200, known[path]) if path in known else (500, {"error_code": 500, "message": EVIL})


def refusing(_method: str, _path: str) -> tuple[int, Any]:
    """Answer everything with an error in a stranger's words."""
    return 500, {"error_code": 500, "message": EVIL}


OFFSET = json.dumps({EVIL: EVIL})

HERE: dict[str, tuple[Run, ...]] = {
    "connect alter": (Run("{evil} --config a=b"),),
    "connect apply": (Run("{folder}/other.yaml"), Run("{folder}/other.yaml --no-validate", "y\n")),
    "connect delete": (Run("{evil}", "no\n"),),
    "connect describe": (Run("{evil}"), Run("{evil} --trace")),
    "connect diff": (Run("{folder}/other.yaml"),),
    "connect list": (Run(), Run("{evil}")),
    "connect loggers list": (Run(),),
    "connect loggers set": (Run("{evil} --level INFO", "y\n"),),
    "connect offsets alter": (Run("{source} --partition {offset} --offset {offset}", "y\n"),),
    "connect offsets reset": (Run("{source} --partition {offset}", "y\n"),),
    "connect offsets show": (Run("{source}"),),
    "connect pause": (Run("{evil}", "y\n"),),
    "connect plugins add": (Run("{evil}"),),
    "connect plugins describe": (Run("{evil}"),),
    "connect plugins list": (Run(),),
    "connect restart": (Run("{evil}", "y\n"),),
    "connect resume": (Run("{evil}", "y\n"),),
    "connect status": (Run(), Run("--trace"), Run("--watch --count 1")),
    "connect stop": (Run("{evil}", "y\n"),),
    "connect validate": (Run("{folder}/connector.yaml"),),
    "connect workers": (Run(),),
    "context add": (Run("{evil} --bootstrap-servers a:1 --no-test"),),
    "context import": (Run("{folder}/client.properties --name imported --replace --no-test"),),
    "context list": (Run(),),
    "context remove": (Run("{evil}"),),
    "context show": (Run("evil"),),
    "context test": (Run("{evil}"),),
    "context use": (Run("{evil}"),),
    "journal list": (Run(),),
    "journal show": (Run("last"),),
    "sandbox logs": (Run("--lines 5", lines=True),),
    "schemas check": (Run("{evil} {folder}/schema.avsc"),),
    "schemas list": (Run(),),
    "schemas show": (Run("{evil}"), Run("--id 1"), Run("{evil} --raw", json=False)),
    "streams capture": (Run("--out {folder}/capture.json -- echo {evil}", json=False),),
}
"""What is driven without a broker."""

ON_BROKERS: dict[str, tuple[Run, ...]] = {
    "apply": (Run("{folder}/plan.json", "n\n"), Run("{folder}/plan.json", "y\n")),
    "changelog get": (Run("{changelog} {evil} --key string --value string --all-partitions"),),
    "changelog history": (Run("{changelog} {evil} --key string --value string --all-partitions"),),
    "changelog inspect": (Run("{changelog} --key string --value string"), Run("{queue}")),
    "changelog stats": (Run("{changelog} --key string --value string", seen=False),),
    "diagnose": (Run("{queue} --sample 100ms"),),
    "groups delete": (Run("{group}", "no\n"), Run("{busy}", "no\n")),
    "groups describe": (Run("{group}"), Run("{busy}")),
    "groups lag": (Run("{group}"), Run("{group} --by group")),
    "groups list": (Run("{group}"),),
    "journal finish": (Run("{evil}"), Run("last", seen=False)),
    "offsets copy": (Run("{group} {other} --new-group", "n\n"),),
    "offsets delete": (Run("{group} --topic {queue}", "no\n"),),
    "offsets edit": (Run("{group}", json=False, seen=False), Run("{evil}")),
    "offsets export": (Run("{group} --with-group"),),
    "offsets history": (Run("{group}"),),
    "offsets reset": (Run("{group} --topic {queue} --to-earliest", "n\n"), Run("{busy} --topic {queue} --to-earliest")),
    "offsets seek": (Run("{group} {queue}:0=start", "y\n"), Run("{group} {queue}:0=end", "y\n"), Run("{busy} {queue}:0=end")),
    "offsets show": (Run("{group}", seen=False), Run("{evil}")),
    "quotas explain": (Run("--user {evil} --client-id {evil}", seen=False),),
    "quotas list": (Run("--user {evil}", seen=False),),
    "quotas remove": (Run("--user {evil}"),),
    "quotas set": (Run("--user {evil} request_percentage=5", "n\n"),),
    "records consume": (
        Run("{queue}"),
        Run("{queue} --value json", seen=False),
        Run("{queue} --raw", lines=True, json=False),
        Run("{queue} --group {evil}", seen=False),
    ),
    "records dead-letters": (Run("{queue}"), Run("{queue} --count")),
    "records peek": (Run("{group} --topic {queue}"),),
    "records produce": (Run("{queue} --key {evil} --key-format long --value v"),),
    "replay archive": (Run("{queue} --to {folder}/archive", seen=False),),
    "replay redrive": (Run("{queue}", "n\n"), Run("{queue}", "y\n")),
    "replay restore": (Run("{kept} --to {restored}", "n\n", seen=False),),
    "replay resume": (Run("{evil}"), Run("last", seen=False)),
    "replay run": (Run("{queue} --to {origin} --value string --where value>'a' -n", seen=False), Run("{queue} --to {evil}")),
    "schemas config": (Run("{evil} --compatibility FULL", "n\n"),),
    "schemas delete": (Run("{evil}", "no\n"),),
    "schemas register": (Run("{evil} {folder}/schema.avsc", "y\n"),),
    "state diff": (Run("{folder}/state.yaml"),),
    "state init": (Run("{application}", seen=False), Run("{group}")),
    "state query": (Run("{folder}/state.yaml --all"), Run("{folder}/state.yaml {evil}")),
    "state rebuild": (Run("{folder}/state.yaml --damaged totals", "n\n", seen=False), Run("{folder}/state.yaml")),
    "state repartition": (Run("{folder}/state.yaml --partitions 2", "n\n", seen=False),),
    "state restore": (Run("{snapshot}", "n\n", seen=False),),
    "state snapshot": (Run("{folder}/state.yaml --to {folder}/kept", seen=False, json=False),),
    "state verify": (Run("{folder}/state.yaml --damaged totals", seen=False), Run("{folder}/state.yaml")),
    "streams delete": (Run("{group}", "no\n", seen=False), Run("{evil}")),
    "streams describe": (Run("{group}"),),
    "streams list": (Run("{group}", seen=False),),
    "streams reset": (Run("{group} --input-topic {queue}"),),
    "topics add-partitions": (Run("{queue} --partitions 3", "n\n", seen=False),),
    "topics alter": (Run("{queue} --config retention.ms={evil}", "y\n"),),
    "topics apply": (Run("{folder}/topics.yaml", "y\n"),),
    "topics create": (Run("{restored} --config retention.ms={evil}", "y\n"),),
    "topics delete": (Run("{queue}", "no\n"),),
    "topics diff": (Run("{folder}/topics.yaml"),),
    "topics truncate": (Run("{queue} --to end", "no\n"),),
    "undo": (Run("last", "n\n"),),
    "users alter": (Run("{evil} --password-file {folder}/schema.avsc"),),
    "users create": (Run("{evil} --password-file {folder}/schema.avsc", "n\n"),),
    "users delete": (Run("{evil}"),),
    "users list": (Run("{evil}"),),
}
"""What is driven with what a broker holds."""
WITHOUT_STRANGERS = {
    **dict.fromkeys(
        (
            *("brokers alter", "brokers config", "brokers demote", "brokers describe", "brokers drain", "brokers list", "brokers log-dirs"),
            *("brokers move-replicas", "brokers unregister", "cluster api-versions", "cluster apply", "cluster diff", "cluster export"),
            *("cluster features downgrade", "cluster features list", "cluster features upgrade"),
            *("cluster quorum add", "cluster quorum remove", "cluster quorum show"),
        ),
        "what whoever runs the brokers configured",
    ),
    **dict.fromkeys(("topics elect-leaders", "topics reassign", "topics reassignments"), "names of topics, and numbers"),
    **dict.fromkeys(
        (
            *("acls audit", "acls create", "acls delete", "acls explain", "acls export", "acls grant", "acls list", "acls revoke"),
            *("client-metrics delete", "client-metrics list", "client-metrics set"),
            *("tokens create", "tokens expire", "tokens list", "tokens renew"),
        ),
        "names that administrators chose, which only their errors are driven with",
    ),
    **dict.fromkeys(
        (
            *("groups alter", "groups config", "groups remove-members"),
            *("share-groups delete", "share-groups delete-offsets", "share-groups lag", "share-groups reset"),
            *("transactions abort", "transactions describe", "transactions list", "transactions producers"),
        ),
        "ids that clients chose, which only their errors are driven with yet",
    ),
    "changelog list": "names of topics, of which Kafka takes letters, digits, dots, dashes and underscores",
    "cluster brokers": "what whoever runs the brokers configured",
    "cluster describe": "what whoever runs the brokers configured",
    "cluster health": "names of topics, and numbers",
    "completion": "a script that kops ships; what a shell completes is in tests/cli/test_completion.py",
    "demo": "its own topics on its own broker",
    "doctor": "this machine's programs and folders",
    "help": "what kops ships",
    "plugins list": "what runs inside kops",
    "sandbox down": "its own processes",
    "sandbox status": "its own processes",
    "sandbox up": "its own processes",
    "topics describe": "names and settings of topics, which brokers check",
    "version": "what kops ships",
    "topics list": "names and settings of topics, which brokers check",
    "topics offsets": "names of topics, and numbers",
}
"""Why a verb has no other test here than that of its errors."""
_ALONE = ("completion", "context list", "demo", "doctor", "help", "plugins", "sandbox", "version")
UNCONNECTED = {verb for verb, _ in every_verb() if verb.startswith(_ALONE)}
"""What asks for no connection: a context that does not exist is not an error for it."""
