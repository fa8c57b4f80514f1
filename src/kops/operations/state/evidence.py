"""What testifies to a computed store: the keys of its changelog that survived. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.statefile import StateFile
from kops.operations.state.exactness import Exactness, worst

ENOUGH = 100
"""So many equal keys testify to a store of any size; fewer only where they are at least half of its keys."""
IF_RIGHT = "if the file is right"
"""Follows the class of a store to which nothing testifies: ``A if the file is right`` is not ``A``."""


@dataclass(frozen=True)
class Proof:
    """How many keys of a changelog testify to what was computed, and how many of them were computed the same.

    :param surviving: live keys of the changelog, without those of damaged partitions and those that kops itself wrote
    :param differing: surviving keys whose value or timestamp was computed differently, or that should not be there
    :param expected: keys that the store should hold
    :param damaged: partitions of which the person said that they are damaged
    :param written: live keys that do not count because kops wrote them
    :param unclear: keys that were computed differently and that kops may have written itself
    :param absent: partition -> expected keys that it does not hold although nothing shows that it lost any
    """

    surviving: int
    differing: int
    expected: int
    damaged: tuple[int, ...] = ()
    written: int = 0
    unclear: int = 0
    absent: Mapping[int, int] = field(default_factory=dict)

    @property
    def missing(self) -> int:
        """Return the number of expected keys whose absence no loss explains."""
        return sum(self.absent.values())

    @property
    def equal(self) -> int:
        """Return the number of surviving keys that were computed the same."""
        return self.surviving - self.differing

    @property
    def suffices(self) -> bool:
        """Tell whether the surviving keys prove the store: all of them equal, and enough of them."""
        return not (self.differing or self.unclear or self.missing) and self.surviving >= max(1, min(ENOUGH, -(-self.expected // 2)))

    @property
    def text(self) -> str:
        """Return it as ``proof: 95 of 95 surviving keys equal``."""
        if not self.surviving:
            found = "proof: none, nothing to compare with"
        else:
            found = f"proof: {self.equal:,} of {self.surviving:,} surviving keys equal"
            if self.missing:
                found += f"; {self.missing:,} more are missing"
            elif not self.differing and not self.suffices:
                found += f", too few to prove all {self.expected:,}"
        if self.unclear:
            found += f"; {self.unclear:,} keys differ, which kops may have written"
        left_out = [f"{self.written:,} keys that kops wrote do not count"] if self.written else []
        if self.damaged:
            which = "partition" if len(self.damaged) == 1 else "partitions"
            left_out.append(f"damaged {which} {', '.join(map(str, self.damaged))} left out")
        return f"{found} ({'; '.join(left_out)})" if left_out else found

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON; ``sufficient`` is what makes a class more than one ``if the file is right``."""
        return {
            "surviving": self.surviving,
            "equal": self.equal,
            "expected": self.expected,
            "sufficient": self.suffices,
            "damaged": list(self.damaged),
            "written_by_kops": self.written,
            "unclear": self.unclear,
            "missing": self.missing,
        }

    def without_own(self, written: Mapping[int, int]) -> Proof:
        """Return it without the keys that kops wrote: they cannot testify to what kops computes.

        :param written: live keys that kops wrote, by partition. Some may be gone, or the application's by now: too few are left then
        """
        own = sum(count for number, count in written.items() if number not in self.damaged)
        found = replace(self, absent={number: count for number, count in self.absent.items() if not written.get(number)})
        if not own or self.differing > own:
            return found
        return replace(
            found,
            surviving=max(0, self.surviving - max(own, self.differing)),
            differing=0,
            written=min(own, self.surviving),
            unclear=self.differing,
        )


def proof_of(
    *,
    surviving: int,
    expected: int,
    actions: Mapping[int, Mapping[str, int]],
    damaged: Collection[int],
    whole: Collection[int] = (),
) -> Proof:
    """Return what the keys of a changelog say.

    :param surviving: its live keys outside of damaged partitions
    :param actions: what the changelog lacks, by partition
    :param whole: partitions with records from offset 0 on: a key that they do not hold was never there, or somebody deleted it
    """
    sound = {number: found for number, found in actions.items() if number not in damaged}
    differing = sum(found.get("changed", 0) + found.get("removed", 0) for found in sound.values())
    absent = {number: found["added"] for number, found in sound.items() if number in whole and found.get("added")}
    return Proof(surviving, differing, expected, tuple(sorted(damaged)), absent=absent)


def with_survivors(exactness: Exactness, proof: Proof, first: Sequence[str]) -> Exactness:
    """Judge by the surviving keys: one that differs takes A from a store, and so does one that is missing without a loss.

    :param first: the first keys that differ, as a person reads them
    """
    reasons = []
    if proof.differing:
        more = f" and {proof.differing - len(first):,} more" if proof.differing > len(first) else ""
        which = f": {', '.join(first)}{more}" if first else ""
        reasons.append(f"{proof.differing:,} of {proof.surviving:,} surviving keys differ from what was computed{which}")
    if proof.missing:
        where = ", ".join(map(str, sorted(proof.absent)))
        many = "partition" if len(proof.absent) == 1 else "partitions"
        reasons.append(
            f"{proof.missing:,} keys that were computed are not in {many} {where}, from which nothing else was lost (--damaged says so)"
        )
    if not reasons:
        return exactness
    found = worst([Exactness("C", tuple(reasons)), exactness])
    return replace(found, reasons=tuple(dict.fromkeys((*reasons, *found.reasons))))


def class_of(exactness: Exactness, proof: Proof | None) -> str:
    """Return the class as it is told: ``A`` only where something testifies to it.

    :param proof: None for a store that is its own changelog, where nothing is written
    """
    if proof is None or proof.suffices or exactness.grade > "B":
        return exactness.grade
    return f"{exactness.grade} {IF_RIGHT}"


def parse_damaged(texts: Sequence[str], state_file: StateFile) -> dict[str, frozenset[int] | None]:
    """Return the damaged partitions of stores; None: all of them.

    :param texts: each ``STORE`` or ``STORE:PARTITION,PARTITION``
    :raises UsageProblem: for another store, or a partition that is no number
    """
    names = {store.name for store in state_file.stores}
    found: dict[str, frozenset[int] | None] = {}
    for text in texts:
        store, colon, numbers = text.partition(":")
        if store not in names:
            known = ", ".join(sorted(names))
            raise UsageProblem(f"--damaged {text}: {state_file.path} has no store {store!r}", hint=f"its stores: {known}")
        parts = numbers.split(",")
        if colon and not all(part.isdecimal() for part in parts):
            raise UsageProblem(
                f"--damaged {text}: {numbers!r} is not a list of partitions", hint=f"such as {store}:0,2, or {store} for all of it"
            )
        before = found.get(store, frozenset())
        found[store] = None if not colon or before is None else before | {int(part) for part in parts}
    return found
