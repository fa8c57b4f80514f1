"""What is reported when a program throws."""

import pytest

from kops.gateways.machine.program import failure_of, program_failure

TRACE = """org.apache.kafka.streams.errors.StreamsException: Exception caught in process
\tat org.apache.kafka.streams.processor.internals.StreamTask.process(StreamTask.java:1)
Caused by: java.lang.IllegalStateException: no
\tat java.base/java.util.Objects.check(Objects.java:1)
\tat com.acme.Totals.add(Totals.java:12)
\tat org.apache.kafka.streams.kstream.internals.KStreamAggregate.process(KStreamAggregate.java:1)
"""
TOLD = {"by": "program", "class": "java.lang.IllegalStateException", "message": "no", "phase": "process", "trace": TRACE}
RECORD = {"topic": "in", "partition": "2", "offset": "17"}


def test_the_exception_its_place_and_the_record_are_named():
    error = program_failure({**TOLD, **RECORD})
    assert error.message == (
        "the program threw java.lang.IllegalStateException: no in com.acme.Totals.add(Totals.java:12) while it was to process"
        " at in:2 offset 17"
    )
    assert error.details["trace"] == TRACE


def test_only_a_record_that_was_read_or_processed_is_said_to_stop_the_application():
    assert program_failure({**TOLD, **RECORD}).hint == "as in production, the application would not get past this record"
    assert program_failure({**TOLD, **RECORD, "phase": "commit"}).hint is None


def test_what_started_the_program_is_not_the_place():
    """The runner is called where the program constructs ``KafkaStreams``, whose callers are the last lines of each trace."""
    started = "\tat app//kops.agent.Session.run(Session.java:1)\n\tat app//com.acme.Main.main(Main.java:9)\n"
    assert " in com.acme.Totals.add(Totals.java:12) while" in program_failure({**TOLD, **RECORD, "trace": TRACE + started}).message
    library = (
        "java.lang.IllegalStateException: no\n\tat app//org.apache.kafka.streams.processor.internals.StreamTask.commit(StreamTask.java:1)\n"
    )
    assert "IllegalStateException: no while" in program_failure({**TOLD, **RECORD, "trace": library + started}).message


def test_before_the_first_record():
    assert program_failure({**TOLD, "phase": "start"}).message.endswith("when its task was made")


def test_a_missing_class_is_named():
    error = program_failure({**TOLD, **RECORD, "class": "java.lang.NoClassDefFoundError", "message": "com/acme/Money"})
    assert error.message == "the program at in:2 offset 17: the class path lacks com.acme.Money"


MOVED = """java.lang.NoClassDefFoundError: org/apache/kafka/common/utils/Moved
\tat app//FRAME
\tat app//kops.agent.Session.run(Session.java:1)
Caused by: java.lang.ClassNotFoundException: org.apache.kafka.common.utils.Moved
\tat java.base/jdk.internal.loader.BuiltinClassLoader.loadClass(BuiltinClassLoader.java:641)
\t... 12 more
"""


def test_a_class_that_a_newer_library_has_elsewhere_is_no_missing_jar():
    """Its place is known to the runner; to the program it would be a jar that is too old, or too new."""
    by_runner, by_program = (MOVED.replace("FRAME", frame) for frame in ("kops.runner.A.b(A.java:1)", "com.acme.Totals.add(T.java:12)"))
    thrown = {"class": "java.lang.NoClassDefFoundError", "message": "org/apache/kafka/common/utils/Moved"}
    noted = {"problem": "no", "error": "NoClassDefFoundError: x", "missing_class": "org.apache.kafka.common.utils.Moved"}
    for error in (program_failure({**TOLD, **thrown, "trace": by_runner}), failure_of({**noted, "trace": by_runner}, "the command")):
        assert error.message.startswith("the tasks of this Kafka Streams cannot be run one by one: ")
        assert "kops state diff" in error.hint
    for error in (program_failure({**TOLD, **thrown, "trace": by_program}), failure_of({**noted, "trace": by_program}, "the command")):
        assert error.message.endswith("the class path lacks org.apache.kafka.common.utils.Moved")


def test_what_the_runner_itself_throws_is_not_the_programs():
    assert program_failure({**TOLD, "by": "runner"}).message == "the runner of the program failed: java.lang.IllegalStateException: no"


@pytest.mark.parametrize(
    ("error", "message", "frame"),
    [
        ("java.lang.NoSuchMethodError", "'void StreamTask.addRecords(int)'", "app//kops.runner.TaskRun.read(TaskRun.java:1)"),
        ("java.lang.AbstractMethodError", "Receiver class kops.runner.Output does not define it", "app//org.apache.kafka.A.b(A.java:1)"),
    ],
)
def test_what_a_library_lacks_is_not_blamed_on_the_program(error, message, frame):
    failure = {**TOLD, **RECORD, "class": error, "message": message, "trace": f"{error}: {message}\n\tat {frame}\n"}
    shown = program_failure(failure)
    assert shown.message == f"the tasks of this Kafka Streams cannot be run one by one: {error}: {message}"
    assert "kops state diff" in shown.hint
    by_program = program_failure({**failure, "message": "no", "trace": f"{error}: no\n\tat app//com.acme.Totals.add(Totals.java:12)\n"})
    assert by_program.message.startswith(f"the program threw {error}: no in com.acme.Totals.add")
