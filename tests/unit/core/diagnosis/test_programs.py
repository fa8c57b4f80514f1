"""What `diagnose --capture` finds: how bad each difference from a program is, and what to do."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.diagnosis.programs import program_findings
from kops.core.streams.capture_differences import Difference
from kops.core.streams.capture_file import read_capture

CAPTURED = json.loads((Path(__file__).parents[1] / "streams" / "capture.json").read_text(encoding="utf-8"))
COUNTS = "many-counts-changelog"
REBUILD = "kops state rebuild --app c.json --store counts --write replace"
OF_PROGRAM = ["stores_without_changelog", "wall_clock_punctuators", "custom_partitioners"]


@pytest.fixture
def found():
    capture = read_capture(CAPTURED, "c.json")

    def run(*differences, known=(), unknown=()):
        return list(program_findings(replace(capture, unknown=unknown), differences, "c.json", known))

    return run


def test_what_a_program_says_itself_is_noted(found):
    notes = found(unknown=(("nodes", "no such field"),))
    assert [each.check for each in notes] == [*OF_PROGRAM, "program_unknown"]
    assert {each.severity.word for each in notes} == {"note"}
    assert [dict(each.facts) for each in notes][:2] == [{"names": ["recent"]}, {"names": ["dedup"]}]
    assert "dedup" in notes[1].summary
    assert notes[3].summary == "could not be read of the program: nodes (no such field)"


def test_missing_topics_are_critical_and_changelogs_are_rebuilt(found):
    first = found(Difference("missing", COUNTS, "counts", program="3 partitions"), Difference("missing", "many-apart-repartition"))[0]
    assert (first.severity.word, first.check, first.subject) == ("critical", "program_topics_missing", "group many")
    assert "do not start it" in first.summary
    assert first.commands == ("kops streams describe --capture c.json", REBUILD)
    only = found(Difference("missing", "many-apart-repartition"), Difference("missing", COUNTS, "counts"), known=[COUNTS])[0]
    assert (only.facts["topics"], len(only.commands)) == (["many-apart-repartition"], 1)


def test_another_number_of_partitions_is_critical(found):
    first = found(Difference("partitions", COUNTS, "counts", program="3", cluster="4"))[0]
    assert (first.severity.word, first.check, first.commands[1]) == ("critical", "program_partitions", REBUILD)
    assert first.summary == "has 4 partitions, and the program needs 3: it does not start"


def test_a_repartition_topic_is_deleted_and_no_changelog_rebuilt(found):
    first = found(Difference("partitions", "many-apart-repartition", program="4", cluster="8"))[0]
    assert (first.severity.word, first.subject) == ("critical", "topic many-apart-repartition")
    assert first.commands[:2] == ("kops groups lag many", "kops topics delete many-apart-repartition")
    assert "rebuild" not in " ".join(first.commands)


@pytest.mark.parametrize(
    ("setting", "program", "cluster", "severity"),
    [
        ("cleanup.policy", "compact", "delete", "critical"),
        ("cleanup.policy", "compact", "compact,delete", "critical"),
        ("cleanup.policy", "compact,delete", "compact", "warning"),
        ("retention.ms", "86760000", "1000", "critical"),
        ("retention.ms", "-1", "1000", "critical"),
        ("retention.ms", "1000", "-1", "warning"),
        ("segment.ms", "600000", "5", "warning"),
    ],
)
def test_settings_by_which_records_go_are_critical(found, setting, program, cluster, severity):
    first = found(Difference("setting", COUNTS, "counts", setting, program, cluster))[0]
    assert (first.check, first.severity.word) == ("program_settings", severity)
    assert ("are deleted" in first.summary) == (severity == "critical")
    assert first.commands == (f"kops topics alter {COUNTS} --config {setting}={program}",)


def test_topics_of_another_version_are_noted(found):
    first = found(Difference("not in program", "many-old-changelog"))[0]
    assert (first.severity.word, first.check, first.facts["topics"]) == ("note", "not_in_program", ["many-old-changelog"])
