"""Internal topics of Kafka Streams that are not there."""

from kops.core.models import Group, Subtopology, WorkingGroup
from kops.core.streams.missing import MissingTopic, missing_finding, missing_topics

AGGREGATE = "KSTREAM-AGGREGATE-STATE-STORE-0000000003"
THIS, OTHER = "KSTREAM-JOINTHIS-0000000006-store", "KSTREAM-JOINOTHER-0000000007-store"
PLAIN = Group("app", "EMPTY", "classic")


def missing(existing, group=PLAIN, deleted=(), noted=None):
    return [(one.topic, one.sure) for one in missing_topics(group, existing, deleted, noted or ())]


def test_what_the_group_registered():
    parts = (Subtopology("0", ("in",), ("app-by-key-repartition",), ()), Subtopology("1", (), (), ("app-totals-changelog",)))
    group = WorkingGroup("app", "STABLE", "streams", subtopologies=parts)
    assert missing({"in", "app-by-key-repartition"}, group) == [("app-totals-changelog", True)]
    assert missing({"in", "app-by-key-repartition", "app-totals-changelog"}, group) == []


def test_what_the_group_had_read_and_what_the_journal_knows():
    assert missing({"in"}, deleted=["app-by-key-repartition", "in-2", "app2-x-repartition"]) == [("app-by-key-repartition", True)]
    assert missing({"in"}, noted=[MissingTopic("app-totals-changelog", "")]) == [("app-totals-changelog", True)]


def test_what_must_be_beside_another():
    assert missing({f"app-{AGGREGATE}-repartition"}) == [(f"app-{AGGREGATE}-changelog", False)]
    assert missing({f"app-{AGGREGATE}-repartition", f"app-{AGGREGATE}-changelog"}) == []
    assert missing({f"app-{THIS}-changelog"}) == [(f"app-{OTHER}-changelog", False)]
    assert missing({f"app-{OTHER}-changelog"}) == [(f"app-{THIS}-changelog", False)]
    outer = "KSTREAM-OUTEROTHER-0000000007-store"  # of a left join
    assert missing({f"app-{THIS}-changelog", f"app-{outer}-changelog"}) == []
    assert missing({"app-by-key-repartition"}) == []  # what it feeds, its name does not tell
    assert missing({f"app2-{THIS}-changelog"}) == []


def test_how_it_is_said():
    sure = missing_topics(PLAIN, {"in"}, (), [MissingTopic("app-totals-changelog", "kops' journal has it (2026)")])
    finding = missing_finding("app", sure)
    assert (finding.severity.word, finding.commands) == ("critical", ("kops streams describe app",))
    assert finding.summary.startswith("internal topics are missing: app-totals-changelog (kops' journal has it (2026)); stores")
    guessed = missing_finding("app", missing_topics(PLAIN, {f"app-{THIS}-changelog"}, (), ()))
    assert (guessed.severity.word, guessed.summary.split(":")[0]) == ("warning", "internal topics seem to be missing")
