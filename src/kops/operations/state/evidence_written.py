"""What the newest records of an output topic show about a computed store. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kops.operations.state.exactness import Exactness


@dataclass(frozen=True)
class OutputEvidence:
    """What the newest record of each key of an output topic shows.

    It shows what the store held when the key was last written. That is not evidence of what happened to the application since: after a
    reset, keys that were not written again are still there. So it settles no doubt about offsets and commits.

    :param topic: the output topic
    :param equal: computed keys whose newest record has the same value and timestamp
    :param differing: computed keys whose newest record has another value or timestamp, or deletes the key
    :param extra: keys that have a value in the topic, and were not computed
    :param partitions: those of the changelog in which every computed key is equal
    """

    topic: str
    equal: int = 0
    differing: int = 0
    extra: int = 0
    partitions: frozenset[int] = frozenset()

    @property
    def text(self) -> str:
        """For example ``30 of 30 keys equal in totals-out``."""
        return f"{self.equal:,} of {self.equal + self.differing:,} keys equal in {self.topic}"

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "equal": self.equal,
            "differing": self.differing,
            "unexpected": self.extra,
            "partitions": sorted(self.partitions),
        }

    def judge(self, first: Sequence[str]) -> Exactness:
        """Return C if the topic contradicts what was computed.

        :param first: the first keys that do, in readable form
        """
        found = [
            *([f"{self.differing:,} have another value or time there"] if self.differing else []),
            *([f"{self.extra:,} keys there were not computed"] if self.extra else []),
        ]
        if not found:
            return Exactness("A")
        why = "the file is wrong, the application was reset or crashed, or the topic is not only this table's (then leave `output` out)"
        return Exactness("C", (f"of the newest records of {self.topic}, {' and '.join(found)} ({'; '.join(first)}): {why}",))
