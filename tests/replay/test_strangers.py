"""What strangers wrote to a real broker, on a terminal: group ids, client ids, header names, exceptions of dead letters."""

import io
import json
import re
import sys
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition

from kops.cli.frame.main import main
from support.consumer_groups import member
from support.programs import Record

pytestmark = [pytest.mark.broker, pytest.mark.spark]

ACTING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u202e]")
STEERING = re.compile("\r\x1b\\[K|\r(?=  )|\x1b\\[K")
"""With this kops rewrites its own line of progress."""
HOSTILE = "x\x1b[1A\x1b[2K\x1b]52;c;cm0=\x07\x9b2J\u202e\u200b\x08\x7f"
FAKE = f"{HOSTILE}\nkops: done; journal 1"


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


@contextmanager
def terminal(monkeypatch, typed):
    """Let the three streams be terminals; give what was shown on stdout and stderr."""
    streams = [Terminal(io.BytesIO(given), encoding="utf-8", write_through=True) for given in (typed.encode(), b"", b"")]
    with monkeypatch.context() as patch:
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        yield lambda: tuple(stream.buffer.getvalue().decode() for stream in streams[1:])


@pytest.fixture
def on_terminal(broker, spark, monkeypatch):
    """Run kops on a terminal, and assert that nothing but kops acts on it."""

    def run(*arguments, typed="", code=0, lines=False):
        with terminal(monkeypatch, typed) as shown:
            ended = main([*map(str, arguments), "-B", broker.bootstrap_servers])
            out, err = shown()
        assert ended == code, err
        assert not ACTING.search(out), (arguments, out)
        assert not ACTING.search(STEERING.sub("", err)), (arguments, err)
        assert lines or not any(line.startswith("kops: done") for line in (out + err).splitlines()), (arguments, out, err)
        return out, err

    return run


def test_nothing_that_strangers_wrote_acts(scene, on_terminal, broker, run_kops, unique):
    origin, queue = scene.topic("origin"), scene.topic("queue")
    group = f"{unique('g')}{FAKE}"
    failed = tuple((f"kafka_dlt-{name}", data) for name, data in {
        "original-topic": origin.encode(), "original-partition": bytes(4), "exception-fqcn": f"com.{HOSTILE}".encode(),
        "exception-message": FAKE.encode()}.items())  # fmt: skip
    scene.cluster.produce(queue, [Record(FAKE.encode(), FAKE.encode(), 1_760_000_000_000, ((FAKE, FAKE.encode()), *failed), 0)])
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(queue, 0, 1)], asynchronous=False)
    consumer.close()

    on_terminal("replay", "redrive", queue, typed="n\n", code=5)
    _, err = on_terminal("replay", "redrive", queue, typed="y\n")
    assert "[y/N]" in err
    assert "\\x1b[1A\\x1b[2K" in err
    for form in ("table", "csv", "json", "yaml", "name"):
        out, _ = on_terminal("groups", "list", group, "-o", form)
        assert "x1b[" in out or "u001b[" in out or "\\e[" in out
        on_terminal("records", "consume", queue, "-o", form)
    on_terminal("records", "consume", queue, "--raw", lines=True)
    on_terminal("records", "consume", queue, "--format", "%k %h %s\n", lines=True)
    on_terminal("records", "dead-letters", queue)
    on_terminal("changelog", "inspect", queue, "--key", "string", "--value", "string")
    on_terminal("groups", "lag", group)
    on_terminal("offsets", "show", group)
    on_terminal("offsets", "seek", group, f"{queue}:0=start", typed="n\n", code=5)
    on_terminal("offsets", "seek", group, f"{queue}:0=start", typed="y\n")
    on_terminal("journal", "list")
    out, _ = on_terminal("journal", "list", "-o", "csv")
    assert "x\\x1b[1A" in out
    on_terminal("journal", "show", "last")
    with member(broker.bootstrap_servers, group, queue, client_id=HOSTILE):
        out, _ = on_terminal("groups", "describe", group)
        assert HOSTILE.split("\x1b", maxsplit=1)[0] in out
        on_terminal("offsets", "seek", group, f"{queue}:0=end", typed="y\n", code=5)
    on_terminal("groups", "delete", group, typed=f"{unique}\n", code=5)
    shown = group.encode("unicode_escape").decode().replace("\\\\", "\\")
    on_terminal("groups", "delete", group, typed=f"{shown}\n")

    # In a pipe data are data: bytes as they are, JSON that means the same.
    assert run_kops("records", "consume", queue, "--raw", "-B", broker.bootstrap_servers).ok().out == f"{FAKE}\n"
    record = json.loads(run_kops("records", "consume", queue, "--key", "string", "-o", "json", "-B", broker.bootstrap_servers).ok().out)
    assert (record["key"], record["headers"][0]["key"]) == (FAKE, FAKE)
