"""Connectors: what Connect answers about them, and what is wrong with them."""

import pytest

from kops.core.connect.models import concerns, connector_findings, connector_of, root_cause

TRACE = """org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:636)
Caused by: org.apache.kafka.connect.errors.ConnectException: java.sql.SQLException: outer
\tat io.example.Sink.put(Sink.java:1)
Caused by: java.sql.SQLException: column "amount" does not exist
\t... 10 more
"""


def body(connector="RUNNING", *tasks, kind="sink", config=None, trace=""):
    status = {
        "name": "c",
        "connector": {"state": connector, "worker_id": "w:1", **({"trace": trace} if trace else {})},
        "tasks": [
            {"id": number, "state": state, "worker_id": "w:1", **({"trace": TRACE} if state == "FAILED" else {})}
            for number, state in enumerate(tasks)
        ],
        "type": kind,
    }
    return {"status": status, "info": {"name": "c", "config": {"topics": "orders, payments"} if config is None else config, "type": kind}}


def found(*arguments, **more):
    return {(finding.severity.word, finding.check): finding for finding in connector_findings(connector_of("c", body(*arguments, **more)))}


def test_a_connector_that_works():
    assert found("RUNNING", "RUNNING", "RUNNING") == {}
    assert found("PAUSED", "PAUSED") == {}  # somebody wanted that
    assert found("STOPPED") == {}


def test_failed_tasks():
    finding = found("RUNNING", "FAILED", "RUNNING", "FAILED")["critical", "tasks_failed"]
    assert finding.summary == '2 of 3 tasks failed: java.sql.SQLException: column "amount" does not exist'
    assert finding.commands == ("kops connect status c --trace", "kops connect describe c")  # a restart would not add the column
    assert [task["id"] for task in finding.facts["tasks"]] == [0, 2]
    assert finding.facts["tasks"][0]["trace"] == TRACE
    assert finding.facts["group"] == "connect-c"


EXITING = "org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.\n\tat x.Y(Y.java:1)\n"
TOLERANCE = "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n\tat x.Y(Y.java:1)\n"
LOOK = "kops connect status c --trace"


@pytest.mark.parametrize(
    ("trace", "kind", "expected"),
    [
        (
            EXITING + "Caused by: java.nio.file.NoSuchFileException: /no/such/out.txt",
            "sink",
            ("kops connect alter c --config file=VALUE", LOOK),
        ),
        (
            "org.apache.kafka.common.config.ConfigException: Invalid value x for tasks.max",
            "source",
            ("kops connect alter c --config tasks.max=VALUE", LOOK),
        ),
        (
            TOLERANCE + "Caused by: org.apache.kafka.connect.errors.DataException: Converting byte[] to Kafka Connect data failed\n"
            "Caused by: com.fasterxml.jackson.core.JsonParseException: Unexpected character",
            "sink",
            (
                "kops records peek connect-c",
                "kops connect alter c --config errors.tolerance=all --config errors.deadletterqueue.topic.name=c-dlq"
                " --config errors.deadletterqueue.context.headers.enable=true",
                LOOK,
            ),
        ),
        (TOLERANCE, "source", (LOOK, "kops connect alter c --config errors.tolerance=all")),
        (
            EXITING + "Caused by: org.postgresql.util.PSQLException: FATAL: password authentication failed",
            "sink",
            (LOOK, "kops connect describe c"),
        ),
        (
            TOLERANCE + "Caused by: org.apache.kafka.common.errors.SerializationException: Error retrieving schema\n"
            "Caused by: java.net.ConnectException: Connection refused",
            "sink",
            ("kops connect restart c --failed", LOOK),
        ),
        (
            "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node",
            "source",
            ("kops connect restart c --failed", LOOK),
        ),
        ("java.lang.NullPointerException", "sink", (LOOK, "kops connect describe c")),
        ("", "sink", (LOOK, "kops connect describe c")),
    ],
)
def test_the_advice_fits_the_error(trace, kind, expected):
    config = {"topics": "orders", "file": "/no/such/out.txt", "tasks.max": "x1"}
    status = {"connector": {"state": "FAILED", "trace": trace}, "type": kind}
    (finding,) = connector_findings(connector_of("c", {"status": status, "info": {"config": config}}))
    assert finding.commands == expected


def test_a_failed_connector():
    assert set(found("FAILED", trace="boom\n\tat x")) == {("critical", "connector_failed")}
    assert "failed: boom" in found("FAILED", trace="boom\n\tat x")["critical", "connector_failed"].summary


def test_nobody_runs_it():
    assert found("UNASSIGNED", "UNASSIGNED")["warning", "connector_unassigned"].summary.startswith("no worker runs it")
    assert found("RUNNING", "UNASSIGNED", "RUNNING")["warning", "connector_unassigned"].summary.startswith("no worker runs 1 task:")


def test_causes():
    assert root_cause(TRACE) == 'java.sql.SQLException: column "amount" does not exist'
    assert root_cause("one\ntwo") == "one"
    assert root_cause("") == "no reason given"
    assert len(root_cause("x" * 1000)) < 330
    long = root_cause(f"DebeziumException: reading at [{'a=b, ' * 100}], but this is gone. Use snapshot mode when needed.")
    assert (long[:33], long[-36:], len(long) <= 320) == ("DebeziumException: reading at [a=", "gone. Use snapshot mode when needed.", True)


def test_the_cause_keeps_the_sentence_that_names_the_topic():
    """As Connect 4.3 writes it for a dead letter topic that cannot be created."""
    said = (
        "org.apache.kafka.common.errors.InvalidReplicationFactorException: Unable to replicate the partition 3 time(s): The target"
        " replication factor of 3 cannot be reached because only 1 broker(s) are registered or some brokers have all their log"
        " directories cordoned."
    )
    trace = (
        "org.apache.kafka.connect.errors.ConnectException: Could not initialize dead letter queue with topic=shipments-dlq\n"
        "\tat org.apache.kafka.connect.runtime.errors.DeadLetterQueueReporter.createAndSetup(DeadLetterQueueReporter.java:93)\n"
        f"Caused by: java.util.concurrent.ExecutionException: {said}\n\t... 11 more\nCaused by: {said}\n"
    )
    cause = root_cause(trace)
    assert cause.startswith("Could not initialize dead letter queue with topic=shipments-dlq; InvalidReplicationFactorException: Unable to")
    assert cause.endswith("The target" + said.split("The target")[1])
    inner = "org.apache.kafka.common.errors.TimeoutException: Topic orders not present in metadata"
    assert root_cause(f"a.B: cannot write to topic=orders\nCaused by: {inner}\n") == inner


DEAD_LETTERS = """org.apache.kafka.connect.errors.ConnectException: Could not initialize dead letter queue with topic=shipments-dlq
\tat org.apache.kafka.connect.runtime.errors.DeadLetterQueueReporter.createAndSetup(DeadLetterQueueReporter.java:115)
Caused by: java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.InvalidReplicationFactorException: 3 of 1
Caused by: org.apache.kafka.common.errors.InvalidReplicationFactorException: Unable to replicate the partition 3 time(s): The target \
replication factor of 3 cannot be reached because only 1 broker(s) are registered or some brokers have all their log directories offline.
"""


def test_the_sentence_that_names_the_topic_is_kept():
    config = {"topics": "shipments", "errors.deadletterqueue.topic.name": "shipments-dlq"}
    answer = body("RUNNING", "FAILED", config=config)
    answer["status"]["tasks"][0]["trace"] = DEAD_LETTERS
    (finding,) = connector_findings(connector_of("c", answer))
    assert finding.summary.startswith("1 of 1 task failed: Could not initialize dead letter queue with topic=shipments-dlq; InvalidRep")
    assert (
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 1"
        in finding.summary
    )
    assert root_cause(DEAD_LETTERS, ["shipments"]) == root_cause(DEAD_LETTERS)  # another topic, whose name the other begins with


def test_what_a_connector_is_about():
    sink = connector_of("c", body())
    assert concerns(sink, {"connect-c"}, ())
    assert concerns(sink, (), {"payments"})
    assert not concerns(sink, {"c"}, {"other"})
    assert connector_of("c", body(config={"consumer.override.group.id": "mine"})).group == "mine"
    assert connector_of("c", body(kind="source")).group is None
    assert connector_of("c", {}).state == "UNKNOWN"
