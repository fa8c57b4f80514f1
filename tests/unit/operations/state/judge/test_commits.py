"""What the commits of an application show: who made them, and for which topic."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kops.core.errors import AuthorizationFailed
from kops.core.groups.history import CommitEvent, GroupHistory
from kops.core.models import Bounds, CommittedOffset, TopicPartition
from kops.core.statefile import parse_state_file
from kops.core.statefile.models import FAUST
from kops.core.times import time_text
from kops.formats.streams.offset_metadata import OffsetMetadata, encode
from kops.operations.state.judge import commits as module
from kops.operations.state.judge.commits import read_commits
from kops.operations.state.judge.journal import OwnHistory
from kops.operations.state.judge.judge import is_settled
from kops.operations.state.rules.past import PastProof
from kops.operations.state.rules.witnesses import witnesses_of
from support.verdicts import DOUBT, kinds

AT = TopicPartition("in", 0)
STREAMS = encode(OffsetMetadata(1_700_000_000_000))
FILE = parse_state_file(
    "f",
    {"application": "app", "stores": {"own": {"from": {"topic": "in", "key": "string", "value": "long"}, "aggregate": {"count": True}}}},
)
SOME, ALL, NONE = (witnesses_of(live={0: live}, expected=200, actions={0: {"added": 200 - live}}) for live in (100, 200, 0))


def streams(offset, topic_id=None):
    return CommittedOffset(offset, STREAMS), topic_id


def tool(offset):
    return CommittedOffset(offset, ""), None


GONE = (None, None)


@pytest.fixture
def judged(monkeypatch):
    """Return what is made of the commits of one partition, the oldest first: ``judged(commit, ..., start=0)``."""

    def read(*commits, start=0, made=(), computed="", topic_id=None, seen=True, file=FILE):
        events = [CommitEvent(AT, 1000 * (at + 1), one, at, an_id) for at, (one, an_id) in enumerate(commits)]

        def log(*_args, **_options):
            if not seen:
                raise AuthorizationFailed("may not read it")
            return SimpleNamespace(histories={"app": GroupHistory({AT: events})})

        monkeypatch.setattr(module, "read_group_log", log)
        topics = SimpleNamespace(existing=lambda names: {name: SimpleNamespace(topic_id=topic_id) for name in names})
        services = SimpleNamespace(kafka=SimpleNamespace(topics=topics))
        facts = [SimpleNamespace(store=SimpleNamespace(name="own"), input_bounds={AT: Bounds(0, 100)})]
        standing = {} if commits[-1][0] is None else {AT: commits[-1][0]}
        past = OwnHistory(computed={"own": computed}, made={AT: frozenset(made)})
        return read_commits(services, file, facts, standing, starts={AT: start}, past=past)

    return read


def reasons(commits, witnesses=NONE, proven=None):
    found = commits.findings.get("own", ())
    assert set(kinds(found)) <= {DOUBT}
    return [each.summary for each in found if not is_settled(each, witnesses, proven)]


@pytest.mark.parametrize(
    "commits",
    [
        [streams(5), streams(9)],
        [tool(0), streams(5)],
        [streams(5), tool(5), streams(9)],
        [streams(5), tool(7), tool(5), streams(9)],
        [streams(5), tool(0)],
        [streams(5), GONE],
        [tool(5), tool(9)],
        [streams(5), (CommittedOffset(9, None), None), streams(12)],
        [streams(5, "one"), streams(9, "one")],
    ],
    ids=[
        "Kafka Streams'",
        "at the log start",
        "nothing moved",
        "undone",
        "not run since",
        "deleted",
        "none of Streams",
        "unread",
        "id",
    ],
)
def test_what_contradicts_nothing(judged, commits):
    assert not reasons(judged(*commits, topic_id="one"))


@pytest.mark.parametrize(
    ("commits", "said"),
    [
        ([streams(5), tool(7), streams(9)], "forward from 5 to 7"),
        ([streams(5), tool(7)], "forward from 5 to 7"),
        ([streams(5), tool(0), tool(7), streams(9)], "forward from 5 to 7"),
        ([streams(9), tool(4), streams(9)], "back from 9 to 4"),
        ([streams(9), tool(0), streams(9)], "back from 9 to 0"),
        ([tool(4), streams(9)], "set the offset of in:0 to 4"),
        ([streams(9), GONE, streams(20)], "expired or was deleted"),
        ([streams(9), GONE, tool(20), streams(30)], "expired or was deleted"),
        ([streams(9, "old"), GONE, streams(20, "now")], "deleted and created again"),
        ([streams(9, "old"), streams(20, "now")], "deleted and created again"),
    ],
)
def test_what_contradicts_computing_from_the_log_start(judged, commits, said):
    found = reasons(judged(*commits, topic_id="now"))
    assert len(found) == 1
    assert said in found[0]


def test_what_kops_did_is_told_by_its_journal(judged):
    assert not reasons(judged(streams(5), tool(7), streams(9), made=(5, 7)))
    assert not reasons(judged(streams(5), GONE, streams(9), made=(5, None)))
    assert reasons(judged(streams(5), GONE, streams(9), made=(5,)))


def test_what_was_before_a_rebuild_is_settled(judged):
    commits = [streams(5), tool(7), streams(9)]
    assert not reasons(judged(*commits, computed=time_text(2500)))
    assert not reasons(judged(*commits, computed=time_text(9500)))
    assert reasons(judged(*commits, computed=time_text(1500)))


def test_what_may_concern_few_keys_is_settled_only_by_all(judged):
    skipped, again = judged(streams(5), tool(7), streams(9)), judged(streams(9), tool(0), streams(9))
    assert reasons(skipped, SOME)
    assert not reasons(skipped, ALL)
    assert not reasons(again, SOME)
    assert reasons(skipped, NONE, PastProof(time_text(1000), 5, {}))
    assert not reasons(skipped, NONE, PastProof(time_text(3000), 5, {}))


def test_where_nothing_ran_since_a_move_the_changelog_is_of_other_offsets(judged):
    assert judged(streams(5), tool(0)).apart == {"own"}
    assert judged(streams(5), tool(9)).apart == {"own"}
    assert not judged(streams(5), tool(9), tool(5)).apart
    assert not judged(streams(5), tool(9), streams(12)).apart
    assert not judged(streams(5), tool(9), made=(9,)).apart


def test_without_the_log_only_what_stands_is_seen(judged):
    found = judged(streams(5), tool(7), seen=False)
    assert (reasons(found), "may not read it" in found.gap) == ([], True), "nothing shows that it is an application of Kafka Streams"
    found = judged(streams(7), seen=False)
    assert not reasons(found)


def test_a_library_whose_commits_have_no_metadata_is_not_judged(judged):
    assert not reasons(judged(streams(5), tool(7), streams(9), file=replace(FILE, library=FAUST)))
