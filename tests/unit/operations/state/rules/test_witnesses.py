"""What surviving keys and an output topic are witnesses of, and how `--damaged` is read."""

from dataclasses import replace

import pytest

from kops.core.errors import UsageProblem
from kops.core.statefile import parse_state_file
from kops.operations.state.rules.witnesses import OutputWitness, parse_damaged, witnesses_of
from support.verdicts import DOUBT, kinds, said


def witnesses(surviving, expected, actions=None, damaged=(), written=0):
    """Of a changelog of one partition."""
    return of_partitions({0: surviving}, expected, actions, damaged).without_own({0: written})


def of_partitions(live, expected, actions=None, damaged=(), **more):
    return witnesses_of(live=live, expected=expected, actions=actions or {}, damaged=damaged, **more)


def shows(found):
    """Return of what the keys are witnesses: of the code, of what happened to their partitions, of all keys."""
    return (found.show_code, found.show_history, found.show_all)


@pytest.mark.parametrize(
    ("found", "proven", "shown"),
    [
        (witnesses(1_204_331, 1_204_331), 1_204_331, (True, True, True)),
        (witnesses(0, 5, {0: {"added": 5}}), 0, (False, False, False)),
        (witnesses(0, 0), 0, (False, False, False)),
        (witnesses(20, 30, {0: {"added": 10}}), 20, (True, False, False)),
        (witnesses(3, 30, {0: {"added": 27}}), 3, (False, False, False)),
        (witnesses(100, 10**6, {0: {"added": 10**6 - 100}}), 100, (True, True, False)),
        (witnesses(9, 9, written=9), 0, (False, False, False)),
        (of_partitions({0: 3, 1: 6}, 9, {0: {"changed": 3}}, damaged={0}), 6, (True, False, False)),
    ],
    ids=["all", "none", "no keys", "half", "few", "enough", "of kops", "damaged"],
)
def test_of_how_many_keys_there_is_a_witness_and_what_they_show_of_others(found, proven, shown):
    assert (found.proven, shows(found)) == (proven, shown)
    assert found.proven == found.equal


@pytest.mark.parametrize(
    ("found", "unshown"),
    [
        (of_partitions({0: 40, 1: 30}, 70), []),
        (of_partitions({0: 4, 1: 80}, 90, {3: {"added": 6}}), [3]),
        (
            of_partitions({0: 400, 1: 4, 2: 99, 5: 100}, 2_000, {1: {"added": 5}, 2: {"added": 100}, 5: {"added": 900}, 7: {"added": 1}}),
            [1, 2, 7],
        ),
        (of_partitions({0: 9}, 9, {1: {"erased": 2}}), [1]),
        (of_partitions({0: 9}, 9, {1: {"erased": 2}}, whole=[0, 1]), []),
        (of_partitions({0: 9, 1: 0}, 9, lossy=[1]), [1]),
        (of_partitions({0: 9, 1: 5}, 14, lossy=[1]), []),
        (of_partitions({0: 9, 1: 5}, 14).without_own({1: 4}), [1]),
        (of_partitions({0: 9, 1: 5}, 9, {1: {"removed": 5}}, damaged={1}), [1]),
        (of_partitions({0: 9, 1: 0}, 9, damaged={1}), []),
    ],
)
def test_what_happened_to_a_partition_its_own_keys_alone_show(found, unshown):
    assert [number for number, each in sorted(found.partitions.items()) if not each.suffices] == unshown
    assert found.show_code
    assert found.show_history == (not unshown)


def test_one_key_that_differs_contradicts_and_is_named():
    live = {0: 900, 1: 100, 2: 7}
    found = of_partitions(live, 1_000, {0: {"changed": 1, "added": 7}, 2: {"removed": 1, "erased": 4}}, damaged={2})
    assert (found.surviving, found.differing, found.equal, found.proven) == (1_000, 1, 999, 999)
    (finding,) = found.contradictions(["k of partition 0: computed 2, found 3"])
    assert kinds([finding]) == [DOUBT]
    assert finding.summary == "1 of 1,000 surviving keys differ from what was computed: k of partition 0: computed 2, found 3"
    assert (finding.check, finding.facts["partitions"]) == ("keys_differ", [0])
    assert not shows(found)[0], "no equal key shows what the code does where one differs"
    assert not witnesses(5, 5).contradictions([])


def test_keys_that_should_not_be_there_differ_and_are_no_computed_keys():
    found = of_partitions({0: 9, 1: 4}, 10, {0: {"removed": 2, "changed": 1}, 1: {"removed": 1}})
    assert (found.differing, found.unexpected, found.proven) == (4, 3, 9)


def test_keys_that_kops_wrote_are_no_witness_and_do_not_contradict():
    some = witnesses(105, 105, written=5)
    assert (some.proven, some.written, shows(some)) == (100, 5, (True, True, False))
    older = witnesses(9, 9, {0: {"changed": 2}}, written=9)
    assert (older.surviving, older.differing, older.unclear, older.proven) == (0, 0, 2, 0)
    assert not older.contradictions([])
    assert not shows(older)[0]
    more = witnesses(9, 9, {0: {"changed": 3}}, written=2)
    assert (more.differing, kinds(more.contradictions([]))) == (3, [DOUBT])


@pytest.mark.parametrize(
    ("live", "differing", "written", "proven"),
    [(9, 3, 2, 4), (4, 3, 2, 0), (9, 3, 3, 3), (9, 3, 6, 0), (3, 3, 2, 0), (9, 3, 40, 0), (9, 0, 2, 7)],
)
def test_equal_keys_may_be_those_that_kops_wrote_where_others_differ(live, differing, written, proven):
    """Those that differ need not be kops' own: then its own may be among the equal ones, and show nothing."""
    found = witnesses(live, live, {0: {"changed": differing}}, written=written)
    assert found.proven == proven
    assert found.written == min(written, live)
    assert found.surviving >= found.differing


def test_a_key_that_differs_is_not_explained_by_what_kops_wrote_elsewhere():
    found = of_partitions({0: 50, 1: 50}, 100, {0: {"changed": 1}}).without_own({1: 50})
    assert (found.differing, found.unclear, found.proven, kinds(found.contradictions([]))) == (1, 0, 49, [DOUBT])


def test_what_kops_wrote_in_a_damaged_partition_counts_neither_way():
    found = of_partitions({0: 9, 1: 5}, 14, damaged={1}).without_own({1: 5})
    assert (found.proven, found.written, found.damaged) == (9, 0, (1,))


def test_missing_keys_are_explained_by_loss():
    lost = witnesses(100, 140, {0: {"added": 40, "erased": 3}})
    assert (lost.proven, lost.missing, shows(lost)) == (100, 0, (True, True, False))
    one = witnesses(6, 7, {0: {"added": 1}})
    assert (one.proven, one.missing, one.show_history) == (6, 0, False)  # it may be older than the application


def test_missing_keys_of_a_partition_that_lost_nothing_contradict():
    live = {0: 50, 1: 10}
    found = of_partitions(live, 100, {0: {"added": 30}, 1: {"added": 10}}, whole=[1])
    (finding,) = found.contradictions([])
    assert (found.missing, found.proven, kinds([finding])) == (10, 60, [DOUBT])
    assert "10 keys that were computed are not in partition 1" in finding.summary
    assert not shows(found)[0]
    declared = of_partitions(live, 60, {1: {"added": 10}}, damaged=[1], whole=[1])
    assert (declared.missing, declared.contradictions([]), declared.proven) == (0, [], 50)
    assert found.without_own({1: 3}).missing == 0  # a rebuild that was killed is run again


def test_a_changelog_of_other_offsets_is_no_witness():
    found = of_partitions({}, 9)
    assert (found.proven, shows(found), found.contradictions([])) == (0, (False, False, False), [])


STORES = parse_state_file(
    "f", {"application": "a", "stores": {name: {"from": {"topic": "t", "key": "string", "value": "long"}} for name in ("s", "other")}}
)


def test_which_part_is_damaged():
    assert parse_damaged(["s"], STORES) == {"s": None}
    assert parse_damaged(["s:0,2", "s:5", "other"], STORES) == {"s": frozenset({0, 2, 5}), "other": None}
    assert parse_damaged(["s:0", "s"], STORES) == {"s": None}


@pytest.mark.parametrize("text", ["x", "s:", "s:a", "s:-1", "s:0,,1", ":0", ""])
def test_what_names_no_part_is_refused(text):
    with pytest.raises(UsageProblem, match="damaged"):
        parse_damaged([text], STORES)


def test_an_output_topic_is_a_witness_of_lost_keys_and_not_of_what_happened():
    lost = of_partitions({0: 5}, 9, {1: {"added": 4}})
    found = replace(lost, output=OutputWitness("out", equal=9, lost={1: 4}))
    assert (lost.proven, found.proven, found.equal) == (5, 9, 5)
    assert shows(found) == shows(lost) == (True, False, False)
    assert found.as_json()["output"] == {"topic": "out", "equal": 9, "differing": 0, "unexpected": 0}


def test_what_an_output_topic_contradicts():
    assert OutputWitness("out", 5).contradictions([]) == []
    found = OutputWitness("out", 5, 2, 1).contradictions(["k: computed 2, written 1"])
    assert kinds(found) == [DOUBT]
    assert "2 have another value or time there and 1 keys there were not computed (k: computed 2, written 1)" in said(found)
