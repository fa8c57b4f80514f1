"""What surviving keys testify, and how `--damaged` is read."""

import pytest

from kops.core.errors import UsageProblem
from kops.core.statefile import parse_state_file
from kops.operations.state.evidence import class_of, parse_damaged, proof_of, with_survivors
from kops.operations.state.exactness import Exactness

A, C = Exactness("A"), Exactness("C", ("an order that nothing holds",))


def proof(surviving, expected, actions=None, damaged=(), written=0):
    return proof_of(surviving=surviving, expected=expected, actions=actions or {}, damaged=damaged).without_own({1: written})


@pytest.mark.parametrize(
    ("found", "text", "grade"),
    [
        (proof(1_204_331, 1_204_331), "proof: 1,204,331 of 1,204,331 surviving keys equal", "A"),
        (proof(0, 5, {0: {"added": 5}}), "proof: none, nothing to compare with", "A if the file is right"),
        (proof(0, 0), "proof: none, nothing to compare with", "A if the file is right"),
        (proof(20, 30, {1: {"added": 10}}), "proof: 20 of 20 surviving keys equal", "A"),
        (proof(3, 30), "proof: 3 of 3 surviving keys equal, too few to prove all 30", "A if the file is right"),
        (proof(100, 10**6), "proof: 100 of 100 surviving keys equal", "A"),
        (proof(9, 9, written=9), "proof: none, nothing to compare with (9 keys that kops wrote do not count)", "A if the file is right"),
        (
            proof(6, 9, {0: {"changed": 3}}, damaged={0}),
            "proof: 6 of 6 surviving keys equal (damaged partition 0 left out)",
            "A",
        ),
    ],
)
def test_a_class_is_bare_only_where_enough_keys_testify(found, text, grade):
    assert found.text == text
    assert class_of(A, found) == grade
    assert class_of(C, found) == "C"
    assert found.as_json()["sufficient"] == (grade == "A")


def test_one_key_that_differs_takes_the_class_and_is_named():
    found = proof(1_000, 1_000, {0: {"changed": 1, "added": 7}, 2: {"removed": 1, "erased": 4}}, damaged={2})
    assert (found.surviving, found.differing, found.equal) == (1_000, 1, 999)
    judged = with_survivors(A, found, ["k of partition 0: computed 2, found 3"])
    assert judged.grade == class_of(judged, found) == "C"
    assert judged.reasons == ("1 of 1,000 surviving keys differ from what was computed: k of partition 0: computed 2, found 3",)
    assert with_survivors(A, proof(5, 5), []) == A


def test_keys_that_kops_wrote_neither_testify_nor_contradict():
    some = proof(100, 100, written=5)
    assert (some.text, class_of(A, some)) == ("proof: 95 of 95 surviving keys equal (5 keys that kops wrote do not count)", "A")
    older = proof(9, 9, {0: {"changed": 2}}, written=9)
    assert (older.surviving, older.differing, older.unclear) == (0, 0, 2)
    assert class_of(with_survivors(A, older, []), older) == "A if the file is right"
    more = proof(9, 9, {0: {"changed": 3}}, written=2)
    assert (more.differing, with_survivors(A, more, []).grade) == (3, "C")


def test_missing_keys_are_explained_by_loss():
    assert class_of(A, proof(60, 100, {0: {"added": 40, "erased": 3}})) == "A"


def test_missing_keys_of_a_partition_that_lost_nothing_contradict():
    found = proof_of(surviving=60, expected=100, actions={0: {"added": 30}, 1: {"added": 10}}, damaged=(), whole=[1])
    judged = with_survivors(A, found, [])
    assert (found.missing, judged.grade) == (10, "C")
    assert "10 keys that were computed are not in partition 1" in judged.reasons[0]
    assert found.text == "proof: 60 of 60 surviving keys equal; 10 more are missing"
    said = proof_of(surviving=60, expected=100, actions={1: {"added": 10}}, damaged=[1], whole=[1])
    assert (said.missing, class_of(with_survivors(A, said, []), said)) == (0, "A")
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
