"""What surviving keys prove, and how `--damaged` is read."""

from dataclasses import replace

import pytest
from kops.operations.state.evidence import OutputEvidence, class_of, parse_damaged, proof_of, with_survivors
from kops.operations.state.exactness import Exactness

from kops.core.errors import UsageProblem
from kops.core.statefile import parse_state_file

A, C = Exactness("A"), Exactness("C", ("an order that nothing holds",))


def proof(surviving, expected, actions=None, damaged=(), written=0):
    """Of a changelog of one partition."""
    return of_partitions({0: surviving}, expected, actions, damaged).without_own({0: written})


def of_partitions(live, expected, actions=None, damaged=(), **more):
    return proof_of(live=live, expected=expected, actions=actions or {}, damaged=damaged, **more)


@pytest.mark.parametrize(
    ("found", "text", "grade"),
    [
        (proof(1_204_331, 1_204_331), "proof: 1,204,331 of 1,204,331 surviving keys equal", "A"),
        (proof(0, 5, {0: {"added": 5}}), "proof: none, nothing to compare with", "A if the file is right"),
        (proof(0, 0), "proof: none, nothing to compare with", "A if the file is right"),
        (
            proof(20, 30, {0: {"added": 10}}),
            "proof: 20 of 20 surviving keys equal, too few of them in partition 0",
            "A if the file is right",
        ),
        (proof(3, 30, {0: {"added": 27}}), "proof: 3 of 3 surviving keys equal, too few to prove all 30", "A if the file is right"),
        (proof(100, 10**6, {0: {"added": 10**6 - 100}}), "proof: 100 of 100 surviving keys equal", "A"),
        (proof(9, 9, written=9), "proof: none, nothing to compare with (9 keys that kops wrote do not count)", "A if the file is right"),
        (
            of_partitions({0: 3, 1: 6}, 9, {0: {"changed": 3}}, damaged={0}),
            "proof: 6 of 6 surviving keys equal (damaged partition 0 left out)",
            "A if the file is right",
        ),
    ],
)
def test_a_class_is_bare_only_where_enough_keys_testify(found, text, grade):
    assert found.text == text
    assert class_of(A, found) == grade
    assert class_of(C, found) == "C"
    assert found.as_json()["sufficient"] == (grade == "A")


@pytest.mark.parametrize(
    ("found", "text", "unproven"),
    [
        (of_partitions({0: 40, 1: 30}, 70), "70 of 70 surviving keys equal", []),
        (of_partitions({0: 4, 1: 80}, 90, {3: {"added": 6}}), "84 of 84 surviving keys equal, none of them in partition 3", [3]),
        (
            of_partitions({0: 400, 1: 4, 2: 99, 5: 100}, 2_000, {1: {"added": 5}, 2: {"added": 100}, 5: {"added": 900}, 7: {"added": 1}}),
            "603 of 603 surviving keys equal, none of them in partition 7 and too few of them in partitions 1, 2",
            [1, 2, 7],
        ),
        (of_partitions({0: 9}, 9, {1: {"erased": 2}}), "9 of 9 surviving keys equal, none of them in partition 1", [1]),
        (of_partitions({0: 9}, 9, {1: {"erased": 2}}, whole=[0, 1]), "9 of 9 surviving keys equal", []),
        (of_partitions({0: 9, 1: 0}, 9, lossy=[1]), "9 of 9 surviving keys equal, none of them in partition 1", [1]),
        (of_partitions({0: 9, 1: 5}, 14, lossy=[1]), "14 of 14 surviving keys equal", []),
        (
            of_partitions({0: 9, 1: 5}, 14).without_own({1: 4}),
            "10 of 10 surviving keys equal, too few of them in partition 1 (4 keys that kops wrote do not count)",
            [1],
        ),
        (
            of_partitions({0: 9, 1: 5}, 9, {1: {"removed": 5}}, damaged={1}),
            "9 of 9 surviving keys equal (damaged partition 1 left out)",
            [1],
        ),
        (of_partitions({0: 9, 1: 0}, 9, damaged={1}), "9 of 9 surviving keys equal (damaged partition 1 left out)", []),
    ],
)
def test_a_partition_is_proven_by_its_own_keys_alone(found, text, unproven):
    assert found.text == f"proof: {text}"
    assert found.as_json()["unproven"] == unproven
    assert class_of(A, found) == ("A if the file is right" if unproven else "A")
    assert found.proves_file


def test_many_partitions_are_not_all_named():
    lost = of_partitions({0: 100}, 120, {number: {"added": 1} for number in range(1, 21)})
    assert lost.text == "proof: 100 of 100 surviving keys equal, none of them in partitions 1, 2, 3, 4, 5, 6, 7, 8 and 12 more"


def test_one_key_that_differs_takes_the_class_and_is_named():
    live = {0: 900, 1: 100, 2: 7}
    found = of_partitions(live, 1_000, {0: {"changed": 1, "added": 7}, 2: {"removed": 1, "erased": 4}}, damaged={2})
    assert (found.surviving, found.differing, found.equal) == (1_000, 1, 999)
    judged = with_survivors(A, found, ["k of partition 0: computed 2, found 3"])
    assert judged.grade == class_of(judged, found) == "C"
    assert judged.reasons == ("1 of 1,000 surviving keys differ from what was computed: k of partition 0: computed 2, found 3",)
    assert with_survivors(A, proof(5, 5), []) == A


def test_keys_that_kops_wrote_neither_testify_nor_contradict():
    some = proof(105, 105, written=5)
    assert (some.text, class_of(A, some)) == ("proof: 100 of 100 surviving keys equal (5 keys that kops wrote do not count)", "A")
    older = proof(9, 9, {0: {"changed": 2}}, written=9)
    assert (older.surviving, older.differing, older.unclear) == (0, 0, 2)
    assert class_of(with_survivors(A, older, []), older) == "A if the file is right"
    more = proof(9, 9, {0: {"changed": 3}}, written=2)
    assert (more.differing, with_survivors(A, more, []).grade) == (3, "C")


def test_a_key_that_differs_is_not_explained_by_what_kops_wrote_elsewhere():
    found = of_partitions({0: 50, 1: 50}, 100, {0: {"changed": 1}}).without_own({1: 50})
    assert (found.differing, found.unclear, with_survivors(A, found, []).grade) == (1, 0, "C")


def test_missing_keys_are_explained_by_loss():
    assert class_of(A, proof(100, 140, {0: {"added": 40, "erased": 3}})) == "A"
    assert class_of(A, proof(6, 7, {0: {"added": 1}})) == "A if the file is right"  # it may be older than the application


def test_missing_keys_of_a_partition_that_lost_nothing_contradict():
    live = {0: 50, 1: 10}
    found = of_partitions(live, 100, {0: {"added": 30}, 1: {"added": 10}}, whole=[1])
    judged = with_survivors(A, found, [])
    assert (found.missing, judged.grade) == (10, "C")
    assert "10 keys that were computed are not in partition 1" in judged.reasons[0]
    assert found.text == "proof: 60 of 60 surviving keys equal; 10 more are missing"
    said = of_partitions(live, 60, {1: {"added": 10}}, damaged=[1], whole=[1])
    assert (said.missing, class_of(with_survivors(A, said, []), said)) == (0, "A if the file is right")
    assert found.without_own({1: 3}).missing == 0  # a rebuild that was killed is run again


def test_a_store_that_is_its_own_changelog_needs_no_witness():
    assert class_of(A, None) == "A"


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


def shown(found, equal, partitions, differing=0):
    return replace(found, output=OutputEvidence("out", equal, differing, partitions=frozenset(partitions)))


@pytest.mark.parametrize(
    ("found", "text", "grade"),
    [
        (shown(of_partitions({}, 9, {0: {"added": 5}, 1: {"added": 4}}), 9, [0, 1]), "no surviving keys; 9 of 9 keys equal in out", "A"),
        (
            shown(of_partitions({0: 5}, 9, {1: {"added": 4}}), 8, [0]),
            "5 of 5 surviving keys equal, none of them in partition 1; 8 of 8 keys equal in out",
            "A if the file is right",
        ),
        (shown(of_partitions({0: 5}, 9, {1: {"added": 4}}), 9, [0, 1]), "5 of 5 surviving keys equal; 9 of 9 keys equal in out", "A"),
        (
            shown(of_partitions({}, 9, {0: {"added": 9}}), 3, []),
            "no surviving keys; 3 of 3 keys equal in out",
            "A if the file is right",
        ),
    ],
)
def test_an_output_topic_proves_partitions_of_which_it_has_every_key(found, text, grade):
    assert (found.text, class_of(A, found)) == (f"proof: {text}", grade)
    assert not found.of_keys.suffices


def test_an_output_topic_does_not_outweigh_the_changelog():
    """It shows what the store held once: keys that a whole log never had, or has otherwise, were forgotten since."""
    absent = shown(of_partitions({0: 3}, 9, {0: {"added": 6}}, whole=[0]), 9, [0])
    differs = shown(of_partitions({0: 9}, 9, {0: {"changed": 1}}), 9, [0])
    own = shown(of_partitions({0: 9}, 9, {0: {"changed": 1}}).without_own({0: 9}), 9, [0])
    assert [class_of(A, found) for found in (absent, differs, own)] == ["A if the file is right"] * 3


def test_what_an_output_topic_contradicts_is_c():
    assert OutputEvidence("out", 5).judge([]) == A
    judged = OutputEvidence("out", 5, 2, 1).judge(["k: computed 2, written 1"])
    assert judged.grade == "C"
    assert "2 have another value or time there and 1 keys there were not computed (k: computed 2, written 1)" in judged.reasons[0]
