"""Whatever a file holds, kops reads it, or refuses it with exit code 2 and the file's name: every reader, every kind of broken file."""

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from kops.cli.schemas import read_schema
from kops.config import files
from kops.config.java_import import read_client_properties, store_type
from kops.config.load import read_config
from kops.config.paths import directories
from kops.config.pem import read_pem
from kops.config.properties import read_properties
from kops.config.secrets import from_file
from kops.core.errors import ExitCode, UsageProblem
from kops.operations.connect import files as connectors
from kops.operations.connect.offsets_plan import read_offsets
from kops.operations.engine.state_files import read_state_file
from kops.operations.offsets.files import file_rules
from kops.operations.protocol.journal import Journal
from kops.operations.protocol.journal_actions import read_plan
from kops.operations.state.snapshot import read_manifest
from kops.operations.streams.capture import load_capture
from kops.operations.streams.capture import read_properties as settings_of_program
from kops.operations.streams.inspection import read_topology
from kops.operations.topics import declared as topics
from kops.operations.topics.truncate import read_offsets_file
from kops.sandbox.model import load
from support.java_judge import random_of

NOW = datetime(2026, 11, 20, tzinfo=timezone.utc)


def config(file):
    found = read_config(directories({"XDG_CONFIG_HOME": str(file.parent.parent)}))
    for name in found.contexts:
        found.layer(name)


READERS = {
    "kops/config.toml": config,
    "client.properties": read_client_properties,
    "sink.properties": read_properties,
    "program.properties": lambda file: settings_of_program(str(file)),
    "state.yaml": lambda file: read_state_file(str(file)),
    "topics.yaml": lambda file: topics.read_declaration([str(file)]),
    "connectors.yaml": lambda file: connectors.read_declaration([str(file)]),
    "connectors.json": lambda file: connectors.read_declaration([str(file)]),
    "plan.json": read_plan,
    "journal/20261120T100000000-aaaa.json": lambda file: list(Journal(file.parent).entries()),
    "capture.json": lambda file: load_capture(str(file)),
    "topology.txt": lambda file: read_topology(str(file)),
    "offsets.csv": lambda file: file_rules(file, NOW),
    "offsets.json": lambda file: file_rules(file, NOW),
    "positions.yaml": lambda file: file_rules(file, NOW),
    "connect-offsets.json": lambda file: read_offsets(file, "sink"),
    "delete.json": lambda file: read_offsets_file(files.read_text(file), str(file)),
    "snapshot/snapshot.json": lambda file: read_manifest(file.parent),
    "sandbox/sandbox.json": lambda file: load(file.parent),
    "schema.avsc": lambda file: read_schema(str(file), None, ()),
    "password": lambda file: from_file(file).reveal(),
    "ca.pem": lambda file: read_pem(str(file), "ca_file"),
    "store.p12": store_type,
}
GOOD = (
    'current = "prod"\n[contexts.prod]\nbootstrap_servers = ["a:1"]\ntimeout = 10\n[contexts.prod.client]\n"client.id" = "x"\n',
    'bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=M required username="a" password="b";\n',
    "application: prices\nguarantee: exactly-once-v2\nstores:\n  totals:\n"
    "    from: {topic: prices, key: string, value: long, start: {0: 5}}\n"
    "    aggregate: {count: true}\n",
    "owns: [shop-*]\n---\nname: orders\npartitions: 6\nconfig:\n  retention.ms: 60000\n  cleanup.policy: [compact, delete]\n",
    "name: sink\nconfig:\n  connector.class: a.B\n  topics: [a, b]\n  tasks.max: 1\n",
    '[{"name": "sink", "config": {"connector.class": "a.B", "tasks.max": 1}}]',
    '{"version": 1, "operation": "x", "summary": "s", "cluster_id": "c", "items": [{"target": "t", "action": "a"}], "arguments": {}}',
    '{"format": "kops-capture", "version": 2, "application_id": "a", "library": {"streams": "4.3.1"}, "command": [], "nodes": []}',
    "Topologies:\n   Sub-topology: 0\n    Source: KSTREAM-SOURCE-0000000000 (topics: [in])\n      --> KSTREAM-SINK-0000000001\n",
    "g,orders,0,12\ng,orders,1,13\n",
    '[{"group": "g", "topic": "orders", "partition": 0, "offset": 12}]',
    "- {topic: orders, partitions: [0, 1], position: +1}\n- {group: g, topic: a, position: '@-1h'}\n",
    '[{"connector": "sink", "partition": {"file": "x"}, "offset": {"position": 4}}]',
    '{"partitions": [{"topic": "orders", "partition": 0, "offset": -1}], "version": 1}',
    '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int"], "default": null}]}',
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
)
DEEP = 20_000
BROKEN = {
    "empty": b"",
    "a byte order mark": b"\xef\xbb\xbf",
    "UTF-16": "name: a\n".encode("utf-16"),
    "no UTF-8": b"name: \xff\n",
    "zeros": bytes(1000),
    "lists": b"[" * DEEP,
    "objects": b'{"a":' * DEEP,
    "whole lists": b"[" * DEEP + b"]" * DEEP,
    "a list in TOML": b"a = " + b"[" * DEEP + b"]" * DEEP,
    "tables in TOML": b"[" + b"a." * DEEP + b"a]\n",
    "block lists": b"- " * 3000,
    "a mapping": b"a: " * 2000,
    "aliases": b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 40)),
    "digits": b'{"version": ' + b"9" * 20_000 + b"}",
    "digits in TOML": b"a = " + b"9" * 20_000,
    "digits in YAML": b"name: a\npartitions: " + b"9" * 20_000,
    "no number": b'{"version": NaN, "a": 1e400}',
    "a key twice": b'{"version": 1, "version": 1}',
    "half a surrogate": b'{"name": "\\ud800", "version": 1}',
    "dashes": b"-" * DEEP,
    "a key without end": b"-----BEGIN CERTIFICATE-----\n" + b"a:b:c\n" * 3000,
}  # fmt: skip


def file_of(folder: Path, name: str, data: bytes) -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return file


def read_or_refused(name: str, file: Path, what: object) -> None:
    try:
        READERS[name](file)
    except UsageProblem as refused:
        assert refused.exit_code == ExitCode.USAGE
        assert file.stem in refused.message or file.parent.name in refused.message, (name, what, refused.message)
        assert len(refused.message) < 100_000
    except Exception as bug:
        raise AssertionError(f"{name}, {what!a:.500}: {type(bug).__name__}: {bug}") from bug


@pytest.mark.parametrize("name", READERS)
def test_broken_files(tmp_path, name):
    for what, data in BROKEN.items():
        read_or_refused(name, file_of(tmp_path, name, data), what)


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file(tmp_path, name, monkeypatch):
    file = file_of(tmp_path, name, b"x" * 100)
    if os.geteuid():
        file.chmod(0)
        read_or_refused(name, file, "may not be read")
        file.chmod(0o600)
    file.unlink()
    file.mkdir()
    read_or_refused(name, file, "a directory")


@pytest.mark.parametrize("name", [name for name in READERS if name != "store.p12"])
def test_a_byte_order_mark_is_not_part_of_a_file(tmp_path, name):
    """What can be read without it, can be read with it."""
    for text in GOOD:
        try:
            without = READERS[name](file_of(tmp_path, name, text.encode()))
        except UsageProblem:
            continue
        assert repr(READERS[name](file_of(tmp_path, name, b"\xef\xbb\xbf" + text.encode()))) == repr(without)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    file = tmp_path / "plan.json"
    with file.open("wb") as stream:
        stream.truncate(1 << 30)
    for name in ("plan.json", "state.yaml", "password", "offsets.csv"):
        with pytest.raises(UsageProblem, match=r"plan\.json has more than \d+ MiB"):
            READERS[name](file)


WORDS = (
    *("[", "]", "{", "}", ":", ",", "-", "\n", " ", '"', "'", "#", "&a ", "*a", "!!int ", "? ", "|\n", "null", "true", "0", "-1", "1e9"),
    *("=", "\\", "\t", "\x00", "\x85", "\ud7ff", "\\u12", "@-1h", "999999999999999999999", "\r", "<<", "//", "/*", "; ", ".", "x" * 300),
)  # fmt: skip


def mutated(random):
    text = random.choice(GOOD)
    for _ in range(random.randint(1, 4)):
        at, end = sorted(random.randint(0, len(text)) for _ in range(2))
        kind = random.random()
        if kind < 0.4:
            text = text[:at] + random.choice(WORDS) + text[at:]
        elif kind < 0.7:
            text = text[:at] + text[min(end, at + 12) :]
        else:
            text = text[:end] + text[at:]
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("count", [150, pytest.param(4_000, marks=pytest.mark.long)])
def test_mutated_files(tmp_path, count):
    """Each file is read by every reader."""
    for random in random_of("files", count):
        data = mutated(random)
        for name in READERS:
            read_or_refused(name, file_of(tmp_path, name, data), data)
