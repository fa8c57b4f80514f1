"""Which dead letters were sent back, as it is noted."""

import pytest

from kops.core.models import CommittedOffset
from kops.operations.replay.redrive import RedriveProgress, _before, done_of, fits


def test_noted_and_read_back():
    for done in (
        RedriveProgress(),
        RedriveProgress(((0, 7),)),
        RedriveProgress(((0, 7), (9, 12), (20, 21)), ((12, 15), (30, 40)), "kops-redrive-x"),
        RedriveProgress(((3, 7),), ((0, 3),), "kops-redrive-x"),
    ):
        assert done_of(done.as_json()) == done
    assert (RedriveProgress(((0, 7), (9, 12))).first, RedriveProgress(((3, 7),)).first, RedriveProgress().first) == (7, 0, 0)
    for other in (["done"], {"done": "x"}):
        with pytest.raises(ValueError, match=r"set of offsets|does not say"):
            done_of(other)


def test_what_a_group_had_before_still_counts():
    assert _before(None) == _before(CommittedOffset(0, "")) == RedriveProgress()
    assert _before(CommittedOffset(7, "")) == RedriveProgress(((0, 7),))


def test_folded_as_far_as_it_came():
    done = RedriveProgress(((0, 7), (9, 12)), ((7, 9), (12, 15), (30, 40)), "kops-redrive-x")
    assert done.folded(None) == RedriveProgress(((0, 7), (9, 12)))
    assert done.folded(13) == RedriveProgress(((0, 13),))
    assert done.folded(40) == RedriveProgress(((0, 15), (30, 40)))


@pytest.mark.slow
def test_what_fits():
    import random

    random.seed(7)
    assert fits(RedriveProgress(tuple((n * 3, n * 3 + 2) for n in range(100_000))))
    scattered = sorted(random.sample(range(10**9), 1_000_000))
    assert not fits(RedriveProgress(tuple(zip(scattered[::2], scattered[1::2], strict=True))))
