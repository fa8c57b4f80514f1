"""Dead letters sent back to where they came from, by cause, each once."""

import json
import re
import signal

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from kafka import KafkaAdminClient

from support import processes
from support.connect import FILE_SINK
from support.kafka import needs_kafka
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.spark]

START = 1_760_000_000_000
TRACE = b"org.apache.kafka.connect.errors.DataException: bad id %d\n\tat Converter.convert\n"


def letters(scene, origin):
    """Return dead letters of all who write them, in two partitions."""

    def connect(n):
        prefix = "__connect.errors."
        return (("own", b"x"), (f"{prefix}topic", origin.encode()), (f"{prefix}partition", b"1"), (f"{prefix}offset", b"%d" % n),
                (f"{prefix}connector.name", b"sink"), (f"{prefix}exception.stacktrace", TRACE % n))  # fmt: skip

    def spring(n):
        return (("retry_topic-attempts", (3).to_bytes(4, "big")), ("x-exception-fqcn", b"older"),
                ("kafka_dlt-original-topic", origin.encode()), ("kafka_dlt-original-partition", (0).to_bytes(4, "big")),
                ("kafka_dlt-exception-fqcn", b"com.shop.TimedOut"), ("kafka_dlt-exception-message", b"no answer in %d ms" % n))  # fmt: skip

    def streams(n):
        return (("__streams.errors.topic", origin.encode()), ("__streams.errors.partition", b"1"),
                ("__streams.errors.exception", b"java.lang.ArithmeticException"), ("__streams.errors.message", b"/ by zero"))  # fmt: skip

    def share(n):
        return (("__dlq.errors.topic", origin.encode()), ("__dlq.errors.partition", b"0"), ("__dlq.errors.group", b"g"),
                ("__dlq.errors.message", b"released too often"))  # fmt: skip

    found = [Record(b"k%d" % n, b"v%d" % n, START + n, (connect, spring, streams, share)[n % 4](n), n % 2) for n in range(80)]
    no_copy = Record(None, None, START + 80, share(80), 0)
    unknown = [Record(b"k%d" % n, b"?%d" % n, START + n, (("own", b"x"),), n % 2) for n in range(81, 85)]
    often = [Record(b"k%d" % n, b"v%d" % n, START + n, (*connect(n), ("kops-redrive-attempts", b"2")), n % 2) for n in range(85, 89)]
    return [*found, no_copy, *unknown, *often]


def plain(record):
    return (record.key, record.value, record.timestamp)


def test_by_cause_and_each_once(scene, kops, as_pinned):
    origin, queue, parked, routed = scene.topic("origin"), scene.topic("queue"), scene.topic("parked"), scene.topic("routed", 3)
    given = letters(scene, origin)
    scene.cluster.produce(queue, given)
    dry = as_pinned("kops replay redrive --dry-run", kops("replay", "redrive", queue, "--dry-run", "-o", "json"))
    counts = {(one["cause"], one["fate"]): one["count"] for one in dry["arguments"]["histogram"]}
    assert counts == {
        ("DataException: bad id …", "send"): 24,
        ("TimedOut: no answer in … ms", "send"): 20,
        ("ArithmeticException: / by zero", "send"): 20,
        ("released too often", "send"): 20,
        ("released too often", "no copy"): 1,
        ("no error headers", "no origin"): 4,
    }
    assert scene.read(origin) == []

    change = ("--set", "headers[repaired]='yes'", "--key", "string")
    where = ("--where", "key like 'k%' and (partition = 1 or dead_letter.written_by = 'spring')")
    chosen = ("--cause", "no answer in", "--cause", "bad id", "--range", "0..80", "--rate", "1000", "--max-attempts", "2")
    for allowed in ((), ("--to-topics", f"{origin}-other")):
        refused = kops("replay", "redrive", queue, *chosen, *where, *change, *allowed, "--yes")
        assert (refused.code, f"--to-topics {origin} allows them" in refused.err, scene.read(origin)) == (5, True, [])
    kops("replay", "redrive", queue, *chosen, *where, *change, "--to-topics", origin, "--yes").ok()
    spring = given[1:80:4]
    assert sorted(plain(r) for r in scene.read(origin)) == sorted(plain(r) for r in spring)
    assert {(r.partition, r.headers) for r in scene.read(origin)} == {(0, (("kops-redrive-attempts", b"1"), ("repaired", b"yes")))}

    rest = ("--max-attempts", "2", "--parked", parked, "--route", routed, "--to-topics", f"{origin}*")
    done = as_pinned("kops replay redrive", kops("replay", "redrive", queue, *rest, "--yes", "-o", "json").ok())
    assert sum(item["value"]["records"] for item in done["items"]) == 20 + 20 + 20 + 4 + 4
    there = scene.read(origin)
    assert sorted(plain(r) for r in there) == sorted(plain(r) for r in given[:80])
    connects = {r.headers for r in there if int(r.value[1:]) % 4 == 0}
    assert connects == {(("own", b"x"), ("kops-redrive-attempts", b"1"))}
    assert sorted((plain(r), r.headers) for r in scene.read(parked)) == [(plain(r), r.headers) for r in given[85:]]
    assert sorted(plain(r) for r in scene.read(routed)) == sorted(plain(r) for r in given[81:85])

    failed_again = Record(b"k", b"new", START + 99, given[0].headers, 1)
    scene.cluster.produce(queue, [failed_again])
    again = kops("replay", "redrive", queue, *rest, "--yes", "-o", "json").ok().json
    assert [(item["status"], item["value"]["records"]) for item in again["items"]] == [("done", 1)]
    assert (len(scene.read(parked)), len(scene.read(routed))) == (4, 4)
    assert [plain(r) for r in scene.read(origin) if r.value == b"new"] == [plain(failed_again)]
    assert len(scene.read(origin)) == 81
    undo = kops("undo", "last", "--yes")
    assert (undo.code, f"kops replay redrive {queue} --again" in undo.err) == (5, True)

    gone = {"topic": f"{origin}-gone".encode(), "partition": b"1", "message": b"late"}
    scene.cluster.produce(queue, [Record(b"k", b"v", START, tuple((f"__streams.errors.{name}", data) for name, data in gone.items()), 1)])
    missing = kops("replay", "redrive", queue, *rest, "--yes", "-o", "json")
    assert (missing.code, f"1 x late: to {origin}-gone" in missing.err, f"there is no topic {origin}-gone" in missing.err) == (
        5,
        True,
        True,
    )
    causes = json.loads(missing.err.splitlines()[-1])["errors"][0]["details"]["histogram"]
    assert [(one["cause"], one["to"]) for one in causes if one["fate"] == "send"] == [("late", f"{origin}-gone")]


@needs_kafka("4.4")
def test_what_a_share_group_gave_up_is_delivered_to_it_again(scene, kops, broker, unique):
    """KIP-1191: the brokers write the dead letters; the redrive sends them to the group's topic, and the group takes them there."""
    origin, queue, group = scene.topic("origin"), f"dlq.{unique('queue')}", unique("group")
    kops("topics", "create", queue, "--config", "errors.deadletterqueue.group.enable=true", "--yes").ok()
    settings = {
        "errors.deadletterqueue.topic.name": queue,
        "errors.deadletterqueue.copy.record.enable": "true",
        "share.auto.offset.reset": "earliest",
    }
    kops("groups", "alter", group, *(word for name, value in settings.items() for word in ("--config", f"{name}={value}")), "--yes").ok()
    given = [Record(b"k%d" % n, b"v%d" % n, START + n, (("own", b"x"),), n % 2) for n in range(10)]
    scene.cluster.produce(origin, given)
    refused = {record.value for record in given[::3]}

    def take(count, rejected=frozenset()):
        settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "share.acknowledgement.mode": "explicit"}
        consumer, taken = ShareConsumer(settings), []
        consumer.subscribe([origin])

        def some():
            for message in consumer.poll(1.0):
                consumer.acknowledge(message, AcknowledgeType.REJECT if message.value() in rejected else AcknowledgeType.ACCEPT)
                taken.append(message)
            consumer.commit_sync()
            return len(taken) >= count

        try:
            wait_for("records", some)
        finally:
            consumer.close()
        return sorted(message.value() for message in taken)

    assert take(10, refused) == [record.value for record in given]
    wait_for("dead letters", lambda: len(scene.read(queue)) == 4)
    dry = kops("replay", "redrive", queue, "--dry-run", "-o", "json").ok().json
    assert [(one["count"], one["to"], one["fate"]) for one in dry["arguments"]["histogram"]] == [(4, origin, "send")]
    sent = kops("replay", "redrive", queue, "--to-topics", origin, "--yes").ok()
    assert "4 dead letters of share groups: sent without the headers and the timestamp" in sent.err
    again = [r for r in scene.read(origin) if ("kops-redrive-attempts", b"1") in r.headers]
    assert sorted((r.key, r.value, r.partition) for r in again) == [(r.key, r.value, r.partition) for r in given[::3]]
    assert all(len(r.headers) == 1 and r.timestamp > START + 10 for r in again)  # the brokers copy neither
    assert take(4) == sorted(refused)
    (rest,) = kops("replay", "redrive", queue, "--to-topics", origin, "--yes", "-o", "json").ok().json["items"]
    assert rest["status"] == "unchanged"
    kops("topics", "delete", queue, "--confirm", queue).ok()


def transactions(broker):
    """Return the states of the transactional ids of redrives."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        ids = [one.transactional_id for many in admin.list_transactions().values() for one in many]
        described = admin.describe_transactions([name for name in ids if name.startswith("kops-redrive-")])
        return {name: found.state.value for name, found in described.items()}
    finally:
        admin.close()


def test_killed_and_gone_on_with(scene, kops, kops_process, broker, unique):
    """The broker slows the writer down; killed, it is refused without --take-over, killed again, and resumed: each once.

    Taking over does not wait for the time-outs of the transactions that the killed one left open: it becomes their writer, which leaves
    them Empty, where a time-out leaves CompleteAbort.
    """
    origin, queue = scene.topic("origin"), scene.topic("queue")
    back = (("__streams.errors.topic", origin.encode()), ("__streams.errors.partition", b"1"), ("__streams.errors.message", b"late"))
    scene.cluster.produce(queue, (Record(b"k", (b"%d-" % n).ljust(1000, b"v"), START + n, back, n % 2) for n in range(2000)))
    scene.cluster.slow_down(slow := unique("slow"), 50_000)
    redrive = ("replay", "redrive", queue, "--to-topics", origin, "--yes")

    def killed(*how):
        before = transactions(broker)
        process = kops_process(*redrive, *how, "-B", broker.bootstrap_servers, "-X", f"client.id={slow}")

        def sends():
            return any(state == "Ongoing" for name, state in transactions(broker).items() if name not in before)

        wait_for("it to send", lambda: process.poll() is not None or sends())
        processes.end(process)
        assert process.returncode == -signal.SIGKILL

    killed()
    refused = kops(*redrive)
    assert (refused.code, "kops replay resume ID" in refused.err) == (5, True)
    first = re.search(r"kops-redrive-\w+-\w+", refused.err).group()
    assert f"takes over from {first}" in kops(*redrive[:-1], "--take-over", "--dry-run").ok().err
    killed("--take-over")
    assert {state for name, state in transactions(broker).items() if name.startswith(first)} == {"Empty"}
    kops("replay", "resume", "last", "--yes").ok()
    assert sorted(plain(r) for r in scene.read(origin)) == sorted(plain(r) for r in scene.read(queue))


def test_of_a_real_connector(scene, kops, connectors, unique, tmp_path):
    """A sink that takes JSON only: its dead letters are repaired, taken, and not sent a second time."""
    origin, queue, output = scene.topic("origin"), scene.topic("queue"), tmp_path / "out.txt"
    dead = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": queue,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    values = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
    file = {"connector.class": FILE_SINK, "file": str(output), "topics": origin, "tasks.max": "1"}
    connectors(unique("sink"), file | values | dead)
    scene.cluster.produce(origin, [Record(b"k%d" % n, b"poison %d" % n, START + n, (), n % 2) for n in range(20)])
    wait_for("the dead letters", lambda: len(scene.read(queue)) == 20)
    repair = ("--set", """value=concat('"', cast(value as string), '"')""")
    kops("replay", "redrive", queue, *repair, "--to-topics", origin, "--yes").ok()
    wait_for("the sink to take them", lambda: output.exists() and len(output.read_text().splitlines()) == 20)
    assert sorted(output.read_text().splitlines()) == sorted(f"poison {n}" for n in range(20))
    again = kops("replay", "redrive", queue, *repair, "--yes", "-o", "json").ok().json
    assert {item["status"] for item in again["items"]} == {"unchanged"}
    assert (len(scene.read(origin)), len(scene.read(queue))) == (40, 20)
