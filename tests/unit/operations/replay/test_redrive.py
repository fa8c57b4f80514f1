"""Which dead letters were sent back, as it is noted."""

import pytest

from kops.core.models import Committed
from kops.operations.replay.redrive import Done, _before, done_of, fits


def test_noted_and_read_back():
    for done in (
        Done(),
        Done(((0, 7),)),
        Done(((0, 7), (9, 12), (20, 21)), ((12, 15), (30, 40)), "kops-redrive-x"),
        Done(((3, 7),), ((0, 3),), "kops-redrive-x"),
    ):
        assert done_of(done.as_json()) == done
    assert (Done(((0, 7), (9, 12))).first, Done(((3, 7),)).first, Done().first) == (7, 0, 0)
    for other in (["done"], {"done": "x"}):
        with pytest.raises(ValueError, match=r"set of offsets|does not say"):
            done_of(other)


def test_what_a_group_had_before_still_counts():
    assert _before(None) == _before(Committed(0, "")) == Done()
    assert _before(Committed(7, "")) == Done(((0, 7),))


def test_folded_as_far_as_it_came():
    done = Done(((0, 7), (9, 12)), ((7, 9), (12, 15), (30, 40)), "kops-redrive-x")
    assert done.folded(None) == Done(((0, 7), (9, 12)))
    assert done.folded(13) == Done(((0, 13),))
    assert done.folded(40) == Done(((0, 15), (30, 40)))


@pytest.mark.slow
def test_what_fits():
    import random

    random.seed(7)
    assert fits(Done(tuple((n * 3, n * 3 + 2) for n in range(100_000))))
    scattered = sorted(random.sample(range(10**9), 1_000_000))
    assert not fits(Done(tuple(zip(scattered[::2], scattered[1::2], strict=True))))
