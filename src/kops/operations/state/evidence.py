"""The evidence for a computed store: the keys of its changelog that survived. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.findings import names_text
from kops.core.statefile import StateFile
from kops.operations.state.exactness import SURE, Exactness, worst


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
            return SURE
        why = "the file is wrong, the application was reset or crashed, or the topic is not only this table's (then leave `output` out)"
        return Exactness("C", (f"of the newest records of {self.topic}, {' and '.join(found)} ({'; '.join(first)}): {why}",))


ENOUGH = 100
"""This many equal keys are evidence for any number of keys: those of their own partition, or a state file. Half of a store's keys are
enough for its state file. Within a partition, fewer keys than this are evidence for themselves alone, since what happened
to a lost key may have happened to no other.
"""
_NAMED = 8
IF_RIGHT = "if the file is right"
"""Follows the class of a store without evidence: ``A if the file is right`` is not ``A``."""


@dataclass(frozen=True)
class Survivors:
    """What the keys of one partition of a changelog show. What another partition holds does not show how this one came to be.

    :param surviving: live keys that count as evidence: none in a damaged partition, and none that kops itself wrote
    :param expected: keys that it should hold
    :param differing: surviving keys whose value or timestamp was computed differently, or that should not be there
    :param absent: expected keys that it does not hold although nothing shows that it lost any
    :param written: live keys that do not count because kops wrote them
    :param unclear: keys that were computed differently and that kops may have written itself
    :param needs_witness: even where it should hold no key: something is deleted from it, or it has lost records
    """

    surviving: int
    expected: int
    differing: int = 0
    absent: int = 0
    written: int = 0
    unclear: int = 0
    needs_witness: bool = False

    @property
    def is_contradicted(self) -> bool:
        return bool(self.differing or self.unclear or self.absent)

    @property
    def suffices(self) -> bool:
        """Whether its surviving keys prove what was computed for it: all of them equal, and enough of them."""
        if self.is_contradicted:
            return False
        return self.surviving >= max(1, min(ENOUGH, self.expected)) or not (self.expected or self.needs_witness)

    def without_own(self, written: int) -> Survivors:
        """Return it without this many live keys, which kops wrote."""
        if not written:
            return self
        found = replace(self, absent=0)
        if self.differing > written:
            return found
        evidence = max(0, self.surviving - max(written, self.differing))
        return replace(found, surviving=evidence, differing=0, written=min(written, self.surviving), unclear=self.differing)


@dataclass(frozen=True)
class Proof:
    """How many keys of a changelog are evidence for what was computed, and how many of them were computed the same.

    :param expected: keys that the store should hold
    :param partitions: what the keys of each partition show; none: the changelog is not evidence
    :param damaged: partitions that the operator declared damaged
    :param output: what the newest records of the output topic show; None: there is none, or it was not needed
    """

    expected: int
    partitions: Mapping[int, Survivors] = field(default_factory=dict)
    damaged: tuple[int, ...] = ()
    output: OutputEvidence | None = None

    @property
    def surviving(self) -> int:
        return sum(each.surviving for each in self.partitions.values())

    @property
    def differing(self) -> int:
        return sum(each.differing for each in self.partitions.values())

    @property
    def equal(self) -> int:
        return self.surviving - self.differing

    @property
    def written(self) -> int:
        return sum(each.written for each in self.partitions.values())

    @property
    def unclear(self) -> int:
        return sum(each.unclear for each in self.partitions.values())

    @property
    def absent(self) -> Mapping[int, int]:
        """The number of expected keys whose absence no loss explains, by partition."""
        return {number: each.absent for number, each in self.partitions.items() if each.absent}

    @property
    def missing(self) -> int:
        return sum(self.absent.values())

    @property
    def contradicted(self) -> Mapping[int, int]:
        """The number of keys that contradict what was computed, by partition: different, or absent although no loss explains it."""
        return {number: each.differing + each.absent for number, each in self.partitions.items() if each.differing or each.absent}

    @property
    def unproven(self) -> tuple[int, ...]:
        """The partitions that neither their own keys nor the output topic prove."""
        shown = self.output.partitions if self.output else frozenset()
        return tuple(
            number
            for number, each in sorted(self.partitions.items())
            if not each.suffices and (number not in shown or each.is_contradicted)
        )

    @property
    def proves_file(self) -> bool:
        """Whether the keys prove the state file, in whichever partitions they are: all of them equal, and enough of them."""
        enough = max(1, min(ENOUGH, -(-self.expected // 2)))
        found = max(self.surviving, self.output.equal if self.output else 0)
        return not (self.differing or self.unclear or self.missing) and found >= enough

    @property
    def suffices(self) -> bool:
        """Whether the keys prove the store: in each partition enough of them.

        The keys of other partitions do not show what happened to the application in one, such as records that it was made to skip.
        """
        return self.proves_file and not self.unproven

    @property
    def of_keys(self) -> Proof:
        """The same without the output topic: what the keys of the changelog alone show."""
        return replace(self, output=None)

    @property
    def text(self) -> str:
        """For example ``proof: 95 of 95 surviving keys equal``."""
        if not self.surviving:
            found = "proof: none, nothing to compare with" if self.output is None else "proof: no surviving keys"
        else:
            found = f"proof: {self.equal:,} of {self.surviving:,} surviving keys equal"
            if self.missing:
                found += f"; {self.missing:,} more are missing"
            elif not self.differing and not self.unclear and not self.proves_file:
                found += f", too few to prove all {self.expected:,}"
            elif not self.differing:
                found += self._unproven_text
        if self.unclear:
            found += f"; {self.unclear:,} keys differ, which kops may have written"
        if self.output:
            found += f"; {self.output.text}"
        left_out = [f"{self.written:,} keys that kops wrote do not count"] if self.written else []
        if self.damaged:
            left_out.append(f"damaged {partitions_text(self.damaged)} left out")
        return f"{found} ({'; '.join(left_out)})" if left_out else found

    @property
    def _unproven_text(self) -> str:
        """Which partitions the surviving keys do not prove; damaged ones are named elsewhere."""
        unproven = {number: self.partitions[number] for number in self.unproven if number >= 0 and number not in self.damaged}
        none = [number for number, each in unproven.items() if not each.surviving and not each.unclear]
        few = [number for number, each in unproven.items() if each.surviving and not each.unclear]
        texts = [f"{what} {partitions_text(found)}" for what, found in (("none of them in", none), ("too few of them in", few)) if found]
        return f", {' and '.join(texts)}" if texts else ""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON; ``sufficient`` is what makes a class more than one ``if the file is right``."""
        return {
            "surviving": self.surviving,
            "equal": self.equal,
            "expected": self.expected,
            "sufficient": self.suffices,
            "unproven": [number for number in self.unproven if number >= 0],
            "damaged": list(self.damaged),
            "written_by_kops": self.written,
            "unclear": self.unclear,
            "missing": self.missing,
            "output": self.output.as_json() if self.output else None,
        }

    def without_own(self, written: Mapping[int, int]) -> Proof:
        """Return it without the keys that kops wrote: they are not evidence for what kops computes.

        :param written: live keys that kops wrote, by partition. Some may be gone, or the application's own by now: then too few are left
        """
        return replace(
            self,
            partitions={
                number: each if number in self.damaged else each.without_own(written.get(number, 0))
                for number, each in self.partitions.items()
            },
        )


def partitions_text(numbers: Collection[int]) -> str:
    """Return partitions by their numbers, as ``partition 3`` or ``partitions 3, 5``."""
    return f"{'partition' if len(numbers) == 1 else 'partitions'} {names_text(sorted(numbers), _NAMED)}"


def proof_of(
    *,
    live: Mapping[int, int],
    expected: int,
    actions: Mapping[int, Mapping[str, int]],
    damaged: Collection[int] = (),
    whole: Collection[int] = (),
    lossy: Collection[int] = (),
) -> Proof:
    """Count the evidence that the keys of a changelog are.

    :param live: how many live keys it holds, by partition
    :param expected: keys that the store should hold
    :param actions: what the changelog lacks, by partition
    :param whole: partitions with records from offset 0 on: a key that they do not hold was never there, or was deleted by someone
    :param lossy: partitions that have lost records
    """
    found = {}
    for number in {*live, *actions, *damaged, *lossy}:
        of_one, held = actions.get(number, {}), live.get(number, 0)
        added, removed = of_one.get("added", 0), of_one.get("removed", 0)
        wanted = max(0, held - removed) + added
        deleted = number not in whole and of_one.get("erased", 0) > 0
        if number in damaged:
            found[number] = Survivors(0, wanted, needs_witness=deleted or removed > 0 or number in lossy)
        else:
            absent = added if number in whole else 0
            differing = of_one.get("changed", 0) + removed
            found[number] = Survivors(held, wanted, differing, absent, needs_witness=deleted or number in lossy)
    return Proof(expected, found, tuple(sorted(damaged)))


def with_survivors(exactness: Exactness, proof: Proof, first: Sequence[str]) -> Exactness:
    """Judge by the surviving keys: a store with one that differs, or with one that is missing without a loss, is not class A.

    :param first: the first keys that differ, in readable form
    """
    reasons = []
    if proof.differing:
        more = f" and {proof.differing - len(first):,} more" if proof.differing > len(first) else ""
        which = f": {', '.join(first)}{more}" if first else ""
        reasons.append(f"{proof.differing:,} of {proof.surviving:,} surviving keys differ from what was computed{which}")
    if proof.missing:
        where = partitions_text(proof.absent)
        reasons.append(
            f"{proof.missing:,} keys that were computed are not in {where}, from which nothing else was lost (--damaged says so)"
        )
    if not reasons:
        return exactness
    return worst([Exactness("C", tuple(reasons)), exactness])


def class_of(exactness: Exactness, proof: Proof | None) -> str:
    """Return the class as it is reported: ``A`` only where there is evidence for it.

    :param proof: None for a store that is its own changelog, where nothing is written
    """
    if proof is None or proof.suffices or exactness.grade > "B":
        return exactness.grade
    return f"{exactness.grade} {IF_RIGHT}"


def parse_damaged(texts: Sequence[str], state_file: StateFile) -> dict[str, frozenset[int] | None]:
    """Return the damaged partitions of stores; None: all of them.

    :param texts: each ``STORE`` or ``STORE:PARTITION,PARTITION``
    :raises UsageProblem: for an unknown store, or a partition that is not a number
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
