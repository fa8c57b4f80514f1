"""Topic names: what is legal, what collides, whose it is."""

import pytest

from kops.core.errors import UsageProblem
from kops.core.topics.names import colliding, name_problem, require_names


@pytest.mark.parametrize("name", ["orders", "a", "A.b-c_9", "x" * 249, "...", "-", "_"])
def test_legal_names(name):
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "a:0", "größe", "a\n", "a*"])
def test_illegal_names(name):
    assert name_problem(name)
    with pytest.raises(UsageProblem):
        require_names([name])


def test_two_new_names_that_share_their_metrics():
    with pytest.raises(UsageProblem, match=r"a\.b and a_b collide"):
        require_names(["x", "a.b", "a_b"])
    require_names(["a.b", "a-b", "a.b"])


def test_a_new_name_that_collides_with_an_existing_one():
    assert colliding("a_b", ["x", "a.b"]) == "a.b"
    assert colliding("a.b", ["a.b"]) is None
    assert colliding("a-b", ["a.b", "a_b"]) is None
    assert colliding("a.b_c", ["a_b_c"]) == "a_b_c"
