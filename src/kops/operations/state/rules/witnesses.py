"""The witnesses of a computed store: the keys of its changelog that survived, and the newest records of its output topic. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.findings import Finding, names_text
from kops.core.statefile import StateFile
from kops.core.streams.verdict import doubt

ENOUGH = 100
"""This many equal keys show what holds for any number of keys: those of their own partition, or what the code does. Half of a store's keys
are enough for the code. Within a partition, fewer keys than this speak for themselves alone, since what happened to a lost key may
have happened to no other.
"""
_NAMED = 8


@dataclass(frozen=True)
class OutputWitness:
    """What the newest record of each key of an output topic shows.

    It shows what the store held when the key was last written. That is not evidence of what happened to the application since: after a
    reset, keys that were not written again are still there. So it settles no doubt about offsets and commits, and while there is one, or
    anything else contradicts what was computed, it shows nothing of keys that the changelog lost.

    :param topic: the output topic
    :param equal: computed keys whose newest record has the same value and timestamp
    :param differing: computed keys whose newest record has another value or timestamp, or deletes the key
    :param extra: keys that have a value in the topic, and were not computed
    :param lost: by partition of the changelog, of how many equal keys it is the only witness
    """

    topic: str
    equal: int = 0
    differing: int = 0
    extra: int = 0
    lost: Mapping[int, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"topic": self.topic, "equal": self.equal, "differing": self.differing, "unexpected": self.extra}

    def contradictions(self, first: Sequence[str]) -> list[Finding]:
        """Return what the topic contradicts.

        :param first: the first keys that do, in readable form
        """
        found = [
            *([f"{self.differing:,} have another value or time there"] if self.differing else []),
            *([f"{self.extra:,} keys there were not computed"] if self.extra else []),
        ]
        if not found:
            return []
        why = (
            "what computes is wrong, the application was reset or crashed, or the topic is not only this table's (then leave `output` out)"
        )
        said = f"of the newest records of {self.topic}, {' and '.join(found)} ({'; '.join(first)}): {why}"
        return [doubt("output_differs", said, keys=list(first))]


@dataclass(frozen=True)
class Survivors:
    """What the keys of one partition of a changelog show. What another partition holds does not show how this one came to be.

    :param surviving: live keys that count as evidence: none in a damaged partition, and none that kops itself wrote
    :param expected: keys that it should hold
    :param differing: surviving keys whose value or timestamp was computed differently, or that should not be there
    :param unexpected: those that should not be there, of the former
    :param absent: expected keys that it does not hold although nothing shows that it lost any
    :param written: live keys that do not count because kops wrote them
    :param unclear: keys that were computed differently and that kops may have written itself
    :param needs_witness: even where it should hold no key: something is deleted from it, or it has lost records
    """

    surviving: int
    expected: int
    differing: int = 0
    unexpected: int = 0
    absent: int = 0
    written: int = 0
    unclear: int = 0
    needs_witness: bool = False

    @property
    def is_contradicted(self) -> bool:
        return bool(self.differing or self.unclear or self.absent)

    @property
    def suffices(self) -> bool:
        """Whether its surviving keys show how it came to be: all of them equal, and enough of them."""
        if self.is_contradicted:
            return False
        return self.surviving >= max(1, min(ENOUGH, self.expected)) or not (self.expected or self.needs_witness)

    def without_own(self, written: int) -> Survivors:
        """Return it without this many live keys, which kops wrote: where some differ, these need not be they, so it may be equal ones."""
        if not written:
            return self
        equal = max(0, self.surviving - self.differing - written)
        found = replace(self, absent=0, written=min(written, self.surviving))
        if self.differing > written:
            return replace(found, surviving=equal + self.differing)
        return replace(found, surviving=equal, differing=0, unexpected=0, unclear=self.differing)


@dataclass(frozen=True)
class Witnesses:
    """How many keys have a witness, and how many of them were computed the same.

    :param expected: keys that the store should hold
    :param partitions: what the keys of each partition of the changelog show; none: the changelog shows nothing
    :param damaged: partitions that the operator declared damaged
    :param output: what the newest records of the output topic show; None: there is none, or it was not needed
    """

    expected: int
    partitions: Mapping[int, Survivors] = field(default_factory=dict)
    damaged: tuple[int, ...] = ()
    output: OutputWitness | None = None

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
    def proven(self) -> int:
        """Keys of which a witness has the same record: the changelog, or the output topic where the changelog lost it."""
        return self.equal + (sum(self.output.lost.values()) if self.output else 0)

    @property
    def written(self) -> int:
        return sum(each.written for each in self.partitions.values())

    @property
    def unclear(self) -> int:
        return sum(each.unclear for each in self.partitions.values())

    @property
    def unexpected(self) -> int:
        return sum(each.unexpected for each in self.partitions.values())

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
    def show_code(self) -> bool:
        """Whether keys show what the application's code does, in whichever partitions they are: all of them equal, and enough of them."""
        enough = max(1, min(ENOUGH, -(-self.expected // 2)))
        return not (self.differing or self.unclear or self.missing) and self.surviving >= enough

    @property
    def show_history(self) -> bool:
        """Whether keys show in each partition what happened there.

        The keys of other partitions do not show what happened to the application in one, such as records that it was made to skip.
        """
        return self.show_code and all(each.suffices for each in self.partitions.values())

    @property
    def show_all(self) -> bool:
        return self.show_history and self.equal >= self.expected

    def as_json(self) -> dict[str, Any]:
        return {
            "surviving": self.surviving,
            "equal": self.equal,
            "expected": self.expected,
            "missing": self.missing,
            "unclear": self.unclear,
            "written_by_kops": self.written,
            "damaged": list(self.damaged),
            "output": self.output.as_json() if self.output else None,
        }

    def without_own(self, written: Mapping[int, int]) -> Witnesses:
        """Return them without the keys that kops wrote: these do not show whether what kops computes is right.

        :param written: live keys that kops wrote, by partition. Some may be gone, or the application's own by now: then too few are left
        """
        return replace(
            self,
            partitions={
                number: each if number in self.damaged else each.without_own(written.get(number, 0))
                for number, each in self.partitions.items()
            },
        )

    def contradictions(self, first: Sequence[str]) -> list[Finding]:
        """Return the findings about surviving keys that differ, and keys that are missing without a loss.

        :param first: the first keys that differ, in readable form
        """
        findings = []
        if self.differing:
            more = f" and {self.differing - len(first):,} more" if self.differing > len(first) else ""
            which = f": {', '.join(first)}{more}" if first else ""
            said = f"{self.differing:,} of {self.surviving:,} surviving keys differ from what was computed{which}"
            findings.append(doubt("keys_differ", said, keys=list(first), partitions=sorted(self.contradicted)))
        if self.missing:
            where = partitions_text(self.absent)
            said = f"{self.missing:,} keys that were computed are not in {where}, from which nothing else was lost (--damaged says so)"
            findings.append(doubt("keys_missing", said, partitions=sorted(self.absent)))
        return findings


def partitions_text(numbers: Collection[int]) -> str:
    """Return partitions by their numbers, as ``partition 3`` or ``partitions 3, 5``."""
    return f"{'partition' if len(numbers) == 1 else 'partitions'} {names_text(sorted(numbers), _NAMED)}"


def witnesses_of(
    *,
    live: Mapping[int, int],
    expected: int,
    actions: Mapping[int, Mapping[str, int]],
    damaged: Collection[int] = (),
    whole: Collection[int] = (),
    lossy: Collection[int] = (),
) -> Witnesses:
    """Count what the keys of a changelog show.

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
            found[number] = Survivors(held, wanted, differing, removed, absent, needs_witness=deleted or number in lossy)
    return Witnesses(expected, found, tuple(sorted(damaged)))


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
