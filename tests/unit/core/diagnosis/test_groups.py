"""What two looks at a group come to."""

import pytest

from kops.core.diagnosis.groups import expiring_findings, gone_findings, member_findings
from kops.core.diagnosis.losses import loss_findings
from kops.core.groups.history import CommitEvent, GroupHistory
from kops.core.groups.lag import Headroom, OpenTransaction, TimeLag
from kops.core.groups.look import EpochEnd, GroupLook, PartitionLook, Skew, skew_of
from kops.core.models import Bounds, CommittedOffset, Group, Member, TopicPartition

NOW = 1_800_000_000_000
HOUR = 3_600_000


def group(state="STABLE", *, members=True, kind="classic", protocol="range"):
    return Group("g", state, kind, protocol, None, (Member("m", "app", "host"),) if members and state != "EMPTY" else ())


def look(number=0, *, committed=10, bounds=(0, 100), waiting=HOUR, owner="app", **more):
    """A partition that is 90 behind, for an hour, and has a member."""
    at = None if committed is None else CommittedOffset(committed)
    return PartitionLook(TopicPartition("t", number), at, bounds and Bounds(*bounds), owner, TimeLag(waiting), **more)


def found(*partitions, group=group(), **more):  # noqa: B008 - frozen
    looks = GroupLook(group, partitions, **{"seconds": 6.0, "at": NOW, "known_since": NOW - 24 * HOUR, **more})
    return {(finding.severity.word, finding.check): finding for finding in group_findings(looks)}


def group_findings(looks):
    return [*member_findings(looks, NOW), *expiring_findings(looks, NOW), *loss_findings(looks, {}), *gone_findings(looks)]


def test_a_group_that_keeps_up():
    assert found(look(committed=100, waiting=0), look(1, committed=99, waiting=59_999, moved=0)) == {}


def test_nothing_but_transaction_markers_left():
    assert found(look(committed=99, waiting=None, moved=0)) == {}


def test_a_partition_that_does_not_move_while_the_others_do():
    finding = found(look(0, moved=0), look(1, waiting=0, moved=5))["critical", "stuck_partitions"]
    assert (
        finding.summary
        == "t:0 does not move, while t:1 of the same member does: 90 records unread, the first has been waiting for 1h; no commit for 1d"
    )
    assert finding.commands == ("kops records peek g --topic t:0", "kops offsets seek g t:0=skip:1 --wait-empty 1m")
    assert finding.facts["partitions"] == ["t:0"]
    assert finding.facts["lag"] == 90
    others = found(look(0, moved=0), look(1, waiting=0, moved=5, owner="other"))["critical", "stuck_partitions"]
    assert others.summary.startswith("t:0 does not move, the others do: ")


def test_a_consumer_that_is_busy_with_another_partition_is_not_told_to_skip():
    finding = found(look(0, moved=0), look(1, moved=5))["warning", "stuck_partitions"]
    assert finding.summary.endswith("; a consumer that is busy with t:1 looks the same, so --sample 60s shows more")
    assert finding.commands == ("kops records peek g --topic t:0", "kops diagnose g --sample 60s")


def test_a_partition_that_does_not_move_and_nothing_to_compare_it_with():
    finding = found(look(0, moved=0), look(1, committed=100, waiting=0, moved=0))["critical", "stuck_partitions"]
    assert finding.summary.startswith("t:0 does not move, and no other partition of the group shows whether its consumer works: ")


def test_partitions_that_stop_together_are_no_poison_pill():
    finding = found(look(0, moved=0), look(1, moved=0, committed=7), look(2, moved=4))["critical", "not_progressing"]
    assert finding.summary == (
        "commits nothing on 2 partitions of app, t:0-1, while others move: 183 records unread, the first has been waiting for 1h;"
        " no commit for 1d; partitions that stop together point to the consumer, not to one record; a consumer that keeps its offsets"
        " elsewhere looks the same"
    )
    assert finding.commands == ("kops groups describe g", "kops groups lag g")
    assert finding.facts["partitions"] == ["t:0", "t:1"]


def transaction(start=10, age=120_000, **more):
    known = {"transactional_id": "tx", "state": "Ongoing", "started": NOW - age, "timeout_ms": 900_000, "includes_partition": True}
    return OpenTransaction(7, 0, start, last_timestamp=NOW - age, **{**known, **more})


@pytest.mark.parametrize("moved", [0, None])
def test_waiting_for_an_open_transaction_is_no_poison_pill(moved):
    findings = found(look(moved=moved, held=transaction(), blocked=True))
    assert set(findings) == {("critical", "waits_for_transaction")}
    finding = findings["critical", "waits_for_transaction"]
    assert finding.summary == (
        "waits on t:0 for an open transaction: 90 records unread, the first has been waiting for 1h; tx, at t:0 from offset 10 on, open for"
        " 2m; it ends when its producer commits or aborts it, or another one takes over its transactional id, or by its time-out in 13m"
    )
    assert finding.commands == ("kops groups lag g --isolation read_committed",)
    assert set(found(look(moved=0, waiting=61_000, held=transaction(), blocked=True))) == {("warning", "waits_for_transaction")}


def test_waiting_for_a_transaction_that_nobody_ends():
    hanging = transaction(transactional_id=None, state=None, started=None, timeout_ms=None, includes_partition=False)
    finding = found(look(moved=0, waiting=61_000, held=hanging, blocked=True))["critical", "waits_for_transaction"]
    assert finding.summary.endswith(
        "producer 7, at t:0 from offset 10 on, open for 2m; no coordinator will end it; `kops transactions abort` does"
    )


def test_waiting_for_a_transaction_of_which_nothing_is_known():
    finding = found(look(moved=0, in_doubt=True, blocked=True))["critical", "waits_for_transaction"]
    assert finding.summary.endswith("; which transaction is not known")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"held": transaction(50)}, "tx has a transaction open there from offset 50 on, for 2m"),
        ({"in_doubt": True}, "is open there is not known"),
    ],
)
def test_nothing_is_to_be_skipped_where_a_transaction_is_open_or_may_be(more, said):
    finding = found(look(0, moved=0, **more), look(1, waiting=0, moved=5))["critical", "stuck_partitions"]
    assert finding.commands == ("kops records peek g --topic t:0",)
    assert said in finding.summary


def test_the_record_that_it_is_at():
    records = {TopicPartition("t", 0): ("offset 12 (key a, value b)", {"offset": 12})}
    finding = found(look(0, moved=0), records=records)["critical", "stuck_partitions"]
    assert finding.summary.endswith("; it is at offset 12 (key a, value b)")
    assert finding.facts["records"] == [{"client_id": "app", "offset": 12}]


@pytest.mark.parametrize(("waiting", "severity"), [(300_000, "critical"), (299_999, "warning")])
def test_a_short_wait_is_not_critical(waiting, severity):
    assert set(found(look(moved=0, waiting=waiting))) == {(severity, "stuck_partitions")}


@pytest.mark.parametrize(
    ("streams", "seconds", "severity", "said"),
    [
        (False, 6.0, "warning", "; no commit during the last 6 s, earlier ones are not known: consumers that commit rarely look the same"),
        (True, 6.0, "warning", ": Kafka Streams commits every 30 s, so --sample 60s shows more"),
        (True, 60.0, "critical", "; no commit during the last 60 s, earlier ones are not known"),
    ],
)
def test_a_short_look_without_the_past_proves_nothing(streams, seconds, severity, said):
    findings = found(look(moved=0), streams=streams, seconds=seconds, known_since=None)
    assert set(findings) == {(severity, "stuck_partitions")}
    finding = findings[severity, "stuck_partitions"]
    assert said in finding.summary
    assert ("skip" in finding.commands[-1]) == (severity == "critical" and not streams)


def commits(*every):
    """Commits of t:0, each of seconds ago and an offset."""
    events = [
        CommitEvent(TopicPartition("t", 0), NOW - 1000 * ago, CommittedOffset(offset), number) for number, (ago, offset) in enumerate(every)
    ]
    return GroupHistory({TopicPartition("t", 0): tuple(events)})


def test_a_group_that_commits_more_rarely_than_the_looks_are_apart_is_slow_and_not_stuck():
    """A consumer held back to ten records in 100 seconds, one commit each."""
    slow = commits((420, 1), (320, 3), (220, 5), (120, 8), (20, 10))
    finding = found(look(moved=0, arrived=6), history=slow)["warning", "falling_behind"]
    assert finding.facts["read_per_second"] == pytest.approx(0.0225, abs=0.05)
    assert finding.summary.endswith("; 0.0 records a second are read, 1 are written")
    stopped = found(look(moved=0), history=commits((900, 1), (800, 3), (700, 5), (600, 8), (500, 10)))
    assert stopped["critical", "stuck_partitions"].summary.endswith("; no commit for 8m20s")
    once = found(look(moved=0), history=commits((30, 10)))
    assert set(once) == {("warning", "falling_behind")}  # it has just begun


def test_behind_and_gaining():
    finding = found(look(moved=30, arrived=15))["note", "catching_up"]
    facts = {"partitions": ["t:0"], "lag": 90, "time_lag_ms": HOUR, "ready_in_ms": 36_000}  # 90 of 15 in 6 s each
    assert finding.facts == {**facts, "read_per_second": 5.0, "written_per_second": 2.5}


def test_behind_and_losing():
    assert set(found(look(moved=10, arrived=10))) == {("warning", "falling_behind")}
    assert set(found(look())) == {("warning", "behind")}  # looked at once


def test_nobody_reads():
    finding = found(look(owner=None), group=group("EMPTY"))["warning", "no_members"]
    assert finding.summary == "no members: no consumer for t:0; 90 records unread, the first has been waiting for 1h"
    assert found(look(owner=None, waiting=1000), group=group("EMPTY")) == {}


def test_a_partition_that_no_member_has():
    assert set(found(look(0, owner=None, moved=0), look(1, waiting=0))) == {("warning", "unassigned_partitions")}
    streams = group(members=False, kind="streams")  # its members are not known
    assert set(found(look(0, owner=None, moved=0), group=streams)) == {("critical", "stuck_partitions")}


def test_an_abandoned_group_is_a_note_and_nothing_else():
    risk = Headroom(5, NOW, "age")
    findings = found(look(owner=None, committed=3, bounds=(10, 100), expiring=risk), group=group("EMPTY"))
    assert set(findings) == {("note", "abandoned")}
    assert findings["note", "abandoned"].commands == ("kops groups lag g", "kops groups delete g")


def test_records_that_were_deleted_unread():
    finding = found(look(committed=3, bounds=(10, 100), waiting=0))["warning", "deleted_unread"]
    assert finding.facts["lost"] == 7


def test_unread_data_that_expires():
    sure = {"by": "age", "certain": True, "keeps": 30 * HOUR}
    some = [look(0, waiting=0, expiring=Headroom(5, NOW + HOUR, **sure)), look(1, waiting=0, expiring=Headroom(7, NOW + 60_000, **sure))]
    finding = found(*some)["critical", "expiring_unread"]
    assert finding.summary == "12 unread records of t:0-1 will be deleted before being read, the first in 1m, unless they are read by then"
    assert finding.commands == (f"kops topics alter t --config retention.ms={30 * HOUR}",)
    by_size = found(look(waiting=0, expiring=Headroom(5, NOW - 1, "size", keeps=2000)))["warning", "expiring_unread"]
    assert by_size.summary.startswith(
        "up to 5 unread records of t:0 may be deleted before being read, the first at the brokers' next check"
    )
    assert by_size.commands == ("kops topics alter t --config retention.bytes=2000",)
    in_time = look(waiting=0, moved=60, expiring=Headroom(5, NOW + 60_000, **sure))  # ten a second
    assert found(in_time) == {}


@pytest.mark.parametrize(("later", "expected"), [("PREPARING_REBALANCE", "warning"), ("STABLE", "note"), (None, "note")])
def test_rebalancing(later, expected):
    findings = found(look(waiting=0), group=group("PREPARING_REBALANCE"), later_state=later)
    assert set(findings) == {(expected, "rebalancing")}


def test_offsets_without_a_place():
    findings = found(look(committed=105), look(1, bounds=None, gone=True))
    assert set(findings) == {("critical", "data_lost"), ("note", "topic_gone")}
    lost = findings["critical", "data_lost"]
    assert lost.summary.startswith("data was lost, or the topic was recreated: t:0 ends at 100, and 105 was committed: 100 to 104 are gone")
    assert lost.commands[0] == "kops offsets seek g t:0=100 --wait-empty 1m"
    assert findings["note", "topic_gone"].commands == ("kops offsets delete g --topic t:1",)


@pytest.mark.parametrize(
    ("end", "check", "said"),
    [
        (
            EpochEnd(80, 7, 2),
            "data_lost",
            "data was lost: t:0 ends at 100, and 105 was committed in leader epoch 5 (now 7, led by broker 2): 80 to",
        ),
        (EpochEnd(-1, 0, 2), "past_the_end", "has committed past the end of t:0: the topic was recreated"),
    ],
)
def test_the_leader_epoch_tells_a_lost_log_from_another_topic(end, check, said):
    one = PartitionLook(TopicPartition("t", 0), CommittedOffset(105, "", 5), Bounds(0, 100), epoch_end=end)
    finding = found(one)["critical", check]
    assert finding.summary.startswith(said)
    assert finding.commands[0] == (
        "kops offsets seek g t:0=80 --wait-empty 1m" if check == "data_lost" else "kops offsets reset g --topic t:0 --to-earliest"
    )


def test_names_are_quoted_for_the_shell():
    strange = Group("my group; rm", "EMPTY", "classic")
    finding = found(look(), group=strange)["warning", "no_members"]
    assert finding.commands[0] == "kops groups lag 'my group; rm'"


@pytest.mark.parametrize(
    ("new", "share"),
    [
        ([4, 4, 192], 0.96),
        ([50, 50, 100], None),
        ([1, 95], 95 / 96),
        ([200], None),
        ([1, 1, 90], None),
        ([10, 10, 10, 10, 10, 60], 60 / 110),
    ],
)
def test_a_hot_partition(new, share):
    new = [count * 2 for count in new] if new == [1, 95] else new
    found_skew = skew_of({TopicPartition("t", number): count for number, count in enumerate(new)}, 600_000)
    assert (found_skew and found_skew.share) == share


def test_what_is_behind_on_a_hot_partition():
    skew = Skew(TopicPartition("t", 0), 0.96, 600_000)
    finding = found(look(), skews=(skew,))["warning", "behind"]
    assert finding.summary.endswith("; t:0 gets 96% of the new records of t (last 10m): a hot key, or the partitioner")
    assert finding.facts["skew"] == {"t:0": 0.96}
    other = found(look(1), skews=(skew,))["warning", "behind"]
    assert "skew" not in other.facts
