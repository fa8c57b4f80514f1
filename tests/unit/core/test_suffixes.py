"""Which records of several logs were copied last to one."""

import itertools
import random

import pytest

from kops.core.suffixes import suffix_lengths


@pytest.mark.parametrize(
    ("merged", "logs", "ways"),
    [
        ([], [[1, 2]], [(0,)]),
        ([2, 3], [[1, 2, 3]], [(2,)]),
        ([1, 3], [[1, 2, 3]], []),
        ([3, 3, 3], [[3, 3]], []),
        ([2, 9, 3], [[1, 2, 3], [8, 9]], [(2, 1)]),
        ([5], [[5], [5]], [(0, 1), (1, 0)]),
        ([5, 5], [[5], [5]], [(1, 1)]),
        ([4, 5], [[5], [4, 5]], [(0, 2)]),
    ],
)
def test_suffix_lengths(merged, logs, ways):
    assert suffix_lengths(merged, logs) == ways


def test_suffix_lengths_match_exhaustive_search():
    chance = random.Random(7)
    for _ in range(300):
        logs = [[chance.randrange(3) for _ in range(chance.randrange(4))] for _ in range(chance.randrange(1, 4))]
        lengths = tuple(chance.randrange(len(log) + 1) for log in logs)
        left = [list(log[len(log) - length :]) for log, length in zip(logs, lengths, strict=True)]
        merged = []
        while any(left):
            merged.append(chance.choice([log for log in left if log]).pop(0))
        assert suffix_lengths(merged, logs) == sorted(
            way for way in itertools.product(*(range(len(log) + 1) for log in logs)) if is_made_of(merged, logs, way)
        )


def is_made_of(merged, logs, way):
    ends = [log[len(log) - length :] for log, length in zip(logs, way, strict=True)]

    def from_here(at, places):
        if at == len(merged):
            return all(place == len(end) for place, end in zip(places, ends, strict=True))
        return any(
            from_here(at + 1, (*places[:one], places[one] + 1, *places[one + 1 :]))
            for one, end in enumerate(ends)
            if places[one] < len(end) and end[places[one]] == merged[at]
        )

    return from_here(0, (0,) * len(logs))
