"""What the commits and members of a group tell about its past; the bytes are those of Kafka's generated classes."""

import struct

import pytest

from kops.core.diagnosis.groups import member_findings
from kops.core.diagnosis.history import history_findings
from kops.core.errors import UndecodableRecord
from kops.core.groups.history import CommitEvent, GroupHistory, MembersEvent, deletions, jumps, moves_of_tools
from kops.core.groups.lag import TimeLag
from kops.core.groups.look import GroupLook, PartitionLook
from kops.core.models import Bounds, CommittedOffset, Group, TopicPartition
from kops.formats.groups.consumer_offsets import MembersKey, decode_classic_members, decode_members_key, decode_value, key_prefixes

PLACE = TopicPartition("t", 0)
NOW = 1_800_000_000_000
MINUTE = 60_000


def events(*commits):
    """Commits a minute after each other: an offset, an offset that a tool commits, or None for a deletion."""
    made = []
    for number, one in enumerate(commits):
        offset, epoch = one if isinstance(one, tuple) else (one, 0)
        committed = None if offset is None else CommittedOffset(offset, "", epoch)
        made.append(CommitEvent(PLACE, NOW + number * MINUTE, committed, number))
    return tuple(made)


def history(*commits, members=()):
    return GroupHistory({PLACE: events(*commits)}, members)


TOOL = None


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ((1, 5, 9), []),
        ((5, (100, TOOL)), [(5, 100, 95)]),
        ((5, (100, TOOL), 110), [(5, 100, 95)]),  # it went on from there
        ((5, (100, TOOL), (5, TOOL)), []),  # undone, and not reported
        ((5, (100, TOOL), (50, TOOL)), [(5, 100, 45)]),
        ((100, (5, TOOL)), [(100, 5, 95)]),
        ((100, (5, TOOL), 60), [(100, 5, 40)]),
        ((100, (5, TOOL), 100), []),  # read again
        ((5, (100, TOOL), None, 3), []),
        (((5, TOOL), (100, TOOL)), []),  # clients that never commit an epoch
    ],
)
def test_jumps(commits, expected):
    assert [(jump.before, jump.after, jump.rest) for jump in jumps(history(*commits))] == expected


def test_a_commit_while_nobody_was_there_is_a_tools():
    gone = MembersEvent(NOW - MINUTE, left=frozenset({"m"}))
    moved = history((5, TOOL), (100, TOOL), members=(MembersEvent(NOW - 2 * MINUTE, frozenset({"m"}), present=1), gone))
    assert [(jump.before, jump.after) for jump in moves_of_tools(moved)] == [(5, 100)]
    there = history((5, TOOL), (100, TOOL), members=(MembersEvent(NOW - MINUTE, frozenset({"m"}), present=1),))
    assert moves_of_tools(there) == []


def test_deletions():
    (one,) = deletions(history(5, None))
    assert (one.offset, one.again, one.time) == (5, None, NOW + MINUTE)
    (one,) = deletions(history(5, None, 9))
    assert (one.offset, one.again) == (5, 9)
    assert list(deletions(history(None, 3))) == []


def test_standing_still():
    assert history(3, 5, 5, 5).standing_since(PLACE) == NOW + MINUTE
    assert history().standing_since(TopicPartition("t", 1)) is None


def look(*, committed=5, bounds=(0, 100), members=(), state="EMPTY", commits=(5,), at=NOW + 10 * MINUTE, **more):
    part = PartitionLook(PLACE, None if committed is None else CommittedOffset(committed), Bounds(*bounds), None, TimeLag(5 * MINUTE))
    return GroupLook(Group("g", state, "classic"), (part,), history=history(*commits, members=members), at=at, **more)


def checks(seen):
    return {finding.check: finding for finding in (*member_findings(seen, seen.at), *history_findings(seen))}


def comings_and_goings(count):
    member = frozenset({"m"})
    pairs = [(MembersEvent(NOW + n, joined=member, present=1), MembersEvent(NOW + n, left=member)) for n in range(1, count + 1)]
    return tuple(event for pair in pairs for event in pair)


def test_a_crash_loop_is_members_that_come_and_go_while_a_partition_stands():
    assert set(checks(look(members=comings_and_goings(3)))) == {"crash_loop"}
    assert set(checks(look(members=comings_and_goings(2)))) == {"no_members"}
    shutdown = tuple(MembersEvent(NOW + n, left=frozenset({f"m{n}"})) for n in range(5))
    assert set(checks(look(members=shutdown))) == {"no_members"}  # five left, and nobody came
    assert set(checks(look(members=comings_and_goings(3), at=NOW + 100 * MINUTE))) == {"no_members"}  # that was long ago
    assert set(checks(look(members=comings_and_goings(3), commits=(3, 5)))) == {"no_members"}  # it has gone on since


def test_a_commit_that_was_deleted():
    found = checks(look(committed=None, commits=(50, None), state="STABLE"))["commits_deleted"]
    assert (found.severity.word, found.facts["recreated"], found.facts["missed"]) == ("warning", False, 50)
    assert found.commands[0].startswith("kops offsets reset g --topic t:0 --to-history @2027-01-15T08:00:59.999Z")
    found = checks(look(committed=None, commits=(500, None), state="STABLE"))["commits_deleted"]
    assert (found.facts["recreated"], found.commands[0]) == (True, "kops offsets reset g --topic t:0 --to-earliest --wait-empty 1m")
    assert ": the topic was recreated, its log ends before what was committed; no commit since, 100 records unread" in found.summary
    passed = checks(look(committed=90, commits=(50, None, 90), state="STABLE"))["commits_deleted"]
    assert "it restarted past 40 records that it did not read" in passed.summary
    assert "commits_deleted" not in checks(look(committed=50, commits=(50, None, 50), state="STABLE"))


def test_a_topic_with_another_id():
    was = CommitEvent(PLACE, NOW, CommittedOffset(5, "", 0), 0, "old")
    gone = CommitEvent(PLACE, NOW + 1, None, 1)
    part = PartitionLook(PLACE, None, Bounds(0, 100))
    past = GroupHistory({PLACE: (was, gone)})
    for now, said in (("new", "the topic was recreated, its id changed"), ("old", "no commit since, 95 records unread")):
        seen = GroupLook(Group("g", "STABLE", "classic"), (part,), history=past, topic_ids={"t": now}, at=NOW)
        assert said in checks(seen)["commits_deleted"].summary


def text(value, *, flexible=False):
    if value is None:
        return b"\0" if flexible else b"\xff\xff"
    data = value.encode()
    return (bytes([len(data) + 1]) if flexible else struct.pack(">h", len(data))) + data


def classic(version, *members):
    flexible = version >= 4
    head = struct.pack(">h", version) + text("consumer", flexible=flexible) + struct.pack(">i", 7)
    head += text("range", flexible=flexible) + text(None, flexible=flexible) + (struct.pack(">q", NOW) if version >= 2 else b"")
    body = bytes([len(members) + 1]) if flexible else struct.pack(">i", len(members))
    for name in members:
        body += text(name, flexible=flexible)
        body += text(None, flexible=flexible) if version >= 3 else b""
        body += text("app", flexible=flexible) + text("/127.0.0.1", flexible=flexible)
        body += (struct.pack(">i", 300_000) if version >= 1 else b"") + struct.pack(">i", 45_000)
        body += (b"\x03ab" * 2 + b"\0") if flexible else (struct.pack(">i", 2) + b"ab") * 2
    return head + body + (b"\0" if flexible else b"")


@pytest.mark.parametrize("version", range(5))
def test_the_members_of_a_classic_group(version):
    data = classic(version, "m-1", "m-2")
    assert set(decode_classic_members(data)) == {"m-1", "m-2"}
    assert decode_classic_members(classic(version)) == {}
    for end in range(len(data) - (2 if version >= 4 else 0)):
        with pytest.raises(UndecodableRecord):
            decode_classic_members(data[:end])


def test_members_of_a_version_that_nobody_knows():
    with pytest.raises(UndecodableRecord, match="version 5"):
        decode_classic_members(struct.pack(">h", 5))


@pytest.mark.parametrize(("kind", "member"), [(2, None), (5, "m"), (19, "m")])
def test_whose_members(kind, member):
    data = struct.pack(">h", kind) + text("g") + (text(member) if member else b"")
    assert decode_members_key(data) == MembersKey("g", member)
    assert data.startswith(key_prefixes("g"))
    assert decode_members_key(struct.pack(">h", 3) + text("g")) is None


def test_the_id_of_the_topic_that_was_committed_for():
    tagged = b"\x01\x00\x10" + bytes(range(1, 17))
    value = struct.pack(">hqi", 4, 42, 7) + b"\x01" + struct.pack(">q", 1000) + tagged
    assert decode_value(value).topic_id == "AQIDBAUGBwgJCgsMDQ4PEA"
    assert decode_value(struct.pack(">hqi", 4, 42, 7) + b"\x01" + struct.pack(">q", 1000) + b"\0").topic_id is None
