"""Which replicas go where: the least data, racks apart, brokers and leaders even."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.cluster.models import LogDir, ReplicaOnDisk
from kops.core.errors import Refused
from kops.core.models import TopicPartition
from kops.core.replicas.planner import Aim, plan_replicas
from kops.core.replicas.space import crowded, require_room, shares_of
from support.placements import apaches, copied, counts, made, racks_of, spread, width

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
ALL = frozenset(RACKS)


def at(number, topic="t"):
    return TopicPartition(topic, number)


@st.composite
def clusters(draw):
    """Brokers in racks, and partitions of one replication factor that lie on some of them."""
    brokers = draw(st.integers(2, 7))
    racks = {broker: draw(st.sampled_from("abc")) for broker in range(1, brokers + 1)}
    factor = draw(st.integers(1, min(3, brokers)))
    lists = st.lists(st.permutations(sorted(racks)).map(lambda order: tuple(order[:factor])), min_size=1, max_size=25)
    placement = {at(number): replicas for number, replicas in enumerate(draw(lists))}
    sizes = {place: draw(st.integers(0, 1000)) for place in placement}
    return racks, placement, sizes, factor


def whole(placement, new):
    return {**placement, **new}


@given(clusters(), st.integers(1, 4))
def test_a_replication_factor_is_reached_by_adding_or_removing_only(cluster, factor):
    racks, placement, sizes, _ = cluster
    if factor > len(racks):
        with pytest.raises(Refused, match=f"to have {factor} replicas"):
            plan_replicas(placement, Aim(frozenset(racks), factor), racks, sizes=sizes)
        return
    new = plan_replicas(placement, Aim(frozenset(racks), factor), racks, sizes=sizes)
    for place, replicas in whole(placement, new).items():
        before = placement[place]
        assert len(replicas) == len(set(replicas)) == factor
        assert set(replicas) <= set(before) or set(replicas) >= set(before)
        assert replicas[0] == before[0]
        reached = min(factor, spread(racks, racks), spread(before, racks) + max(0, factor - len(before)))
        if factor >= len(before):
            assert spread(replicas, racks) == reached
        assert (place in new) == (len(before) != factor)


@given(clusters(), st.data())
def test_brokers_are_left_and_nothing_else_moves(cluster, data):
    racks, placement, sizes, factor = cluster
    gone = data.draw(st.sampled_from(sorted(racks)))
    allowed = frozenset(racks) - {gone}
    if factor > len(allowed):
        with pytest.raises(Refused):
            plan_replicas(placement, Aim(allowed), racks, sizes=sizes)
        return
    new = plan_replicas(placement, Aim(allowed), racks, sizes=sizes)
    assert set(new) == {place for place, replicas in placement.items() if gone in replicas}
    for place, replicas in new.items():
        assert gone not in replicas
        assert len(replicas) == len(set(replicas)) == factor
        assert set(placement[place]) - {gone} < set(replicas)
        others = [broker for broker in placement[place] if broker != gone]
        assert spread(replicas, racks) == min(spread(others, racks) + 1, spread({*others, *allowed}, racks))
        if placement[place][0] != gone:
            assert replicas[0] == placement[place][0]


@given(clusters())
def test_a_balanced_cluster_is_as_even_as_racks_allow_and_stays_as_it_is(cluster):
    racks, placement, sizes, factor = cluster
    aim = Aim(frozenset(racks), balance=True)
    after = whole(placement, plan_replicas(placement, aim, racks, sizes=sizes))
    for place, replicas in after.items():
        assert len(replicas) == len(set(replicas)) == factor
        assert spread(replicas, racks) == max(spread(placement[place], racks), min(factor, spread(racks, racks)))
    if (spread(racks, racks) in (1, len(racks)) and factor <= spread(racks, racks)) or factor == 1:
        assert width(counts(after), racks) <= 1
    assert plan_replicas(after, aim, racks, sizes=sizes) == {}


@given(clusters())
def test_no_step_would_make_it_more_even(cluster):
    """A move of one replica, or to another leader, never helps: what is even is so to the end."""
    racks, placement, sizes, _ = cluster
    after = whole(placement, plan_replicas(placement, Aim(frozenset(racks), balance=True), racks, sizes=sizes))
    held, led = counts(after), counts(after, leaders=True)
    for replicas in after.values():
        for source in replicas:
            for target in set(racks) - set(replicas):
                moved = [*(set(replicas) - {source}), target]
                assert held[source] - held[target] < 2 or spread(moved, racks) < spread(replicas, racks)
        assert all(led[replicas[0]] - led[other] < 2 for other in replicas)


def test_the_smallest_replicas_are_moved():
    placement = {at(number): (1,) for number in range(4)}
    sizes = {at(number): 10 ** (3 - number) for number in range(4)}
    new = plan_replicas(placement, Aim(frozenset({1, 2}), balance=True), {1: None, 2: None}, sizes=sizes)
    assert new == {at(2): (2,), at(3): (2,)}


def test_replicas_out_of_sync_are_removed_first():
    placement = {at(0): (1, 2, 3)}
    assert plan_replicas(placement, Aim(ALL, 2), RACKS, in_sync={at(0): (1, 3)}) == {at(0): (1, 3)}


def test_what_other_partitions_hold_counts():
    new = plan_replicas({at(0): (1,)}, Aim(ALL, 2), RACKS, others=[(2, 3, 4), (2, 3, 4)])
    assert new == {at(0): (1, 5)}


def test_a_broker_that_is_to_be_last_keeps_its_replicas():
    placement = {at(0): (1, 2, 3), at(1): (1, 3, 2), at(2): (2, 1, 3), at(3): (1,)}
    new = plan_replicas(placement, Aim(ALL, last=frozenset({1})), RACKS)
    assert {place: sorted(replicas) for place, replicas in new.items()} == {place: [1, 2, 3] for place in (at(0), at(1), at(2))}
    assert {replicas[-1] for replicas in new.values()} == {1}
    assert new[at(2)][0] == 2
    assert counts(new, leaders=True) in ({2: 2, 3: 1}, {2: 1, 3: 2})


@pytest.mark.parametrize("seed", range(3))
def test_never_more_bytes_than_apaches_tool(seed):
    """The tool places every topic without looking at where it lies."""
    racks = racks_of(5)
    placement, sizes = made(300, (1, 2, 3), 3, seed)
    theirs = apaches(placement, racks)
    ours = whole(placement, plan_replicas(placement, Aim(frozenset(racks), balance=True), racks, sizes=sizes))
    assert copied(placement, ours, sizes) <= copied(placement, theirs, sizes)
    assert width(counts(ours), racks) <= width(counts(theirs), racks)
    assert width(counts(ours, leaders=True), racks) <= max(1, width(counts(theirs, leaders=True), racks))
    assert all(spread(replicas, racks) == 3 for replicas in ours.values())


@pytest.mark.long
@pytest.mark.parametrize("brokers", [3, 5])
def test_five_thousand_partitions_on_paper(brokers, record_property):
    racks = racks_of(brokers)
    placement, sizes = made(5_000, (1, 2, 3), 2 if brokers == 3 else 3, brokers)
    theirs = apaches(placement, racks)
    ours = whole(placement, plan_replicas(placement, Aim(frozenset(racks), balance=True), racks, sizes=sizes))
    for name, after in (("kops", ours), ("apache", theirs)):
        record_property(name, [copied(placement, after, sizes), width(counts(after), racks), width(counts(after, leaders=True), racks)])
    assert copied(placement, ours, sizes) <= copied(placement, theirs, sizes)
    assert width(counts(ours), racks) <= width(counts(theirs), racks)
    assert width(counts(ours, leaders=True), racks) <= max(1, width(counts(theirs, leaders=True), racks))


def on(broker, usable, *sizes):
    replicas = tuple(ReplicaOnDisk(at(number), size) for number, size in enumerate(sizes))
    return LogDir(broker, f"/data/{broker}", replicas, total_bytes=1000, usable_bytes=usable)


def test_what_would_not_fit_is_refused():
    disks = {1: [on(1, 500, 300, 50)], 2: [on(2, 299)]}
    moves = {at(0): ((1,), (2,))}
    shares, unknown = shares_of(moves, {at(0): 1}, disks)
    assert [(share.broker, share.receives, share.frees, share.usable) for share in shares] == [(1, 0, 300, 500), (2, 300, 0, 299)]
    assert unknown == []
    with pytest.raises(Refused, match="broker 2 would receive 300 B, and has 299 B free"):
        require_room(shares)
    require_room(shares_of({at(1): ((1,), (2,))}, {at(1): 1}, disks)[0])


def test_a_broker_that_has_room_may_have_none_in_a_log_directory():
    """It chooses the directory, by the number of partitions and not by room."""

    def moved(*rooms):
        disks = {
            1: [on(1, 500, 300, 200)],
            2: [LogDir(2, f"/{n}", total_bytes=1000 + n, usable_bytes=room) for n, room in enumerate(rooms)],
        }
        shares, _ = shares_of({at(n): ((1,), (2,)) for n in (0, 1)}, {}, disks)
        require_room(shares)
        return shares[1]

    assert crowded(moved(600, 500)) == crowded(moved(500)) == ""
    assert (
        moved(600, 499).text == "broker 2 receives 500 B and frees 0 B; free now 1.1 KiB (/0 600 B, /1 499 B), afterwards 599 B of 2.0 KiB"
    )
    assert crowded(moved(600, 499)).endswith("whether they fit is not known, for /1 has 499 B free")
    with pytest.raises(Refused, match="a replica of 300 B, and none of its log directories has more than 299 B free"):
        moved(299, 298)
    with pytest.raises(Refused, match="broker 2 would receive 500 B, and has 499 B free"):
        moved(300, 199)


def test_room_and_sizes_that_are_not_known_are_said():
    moves = {at(7): ((1,), (2,))}
    shares, unknown = shares_of(moves, {}, {1: [LogDir(1, "/data")]})
    assert unknown == [at(7)]
    assert [share.usable for share in shares] == [None, None]
    require_room(shares)
