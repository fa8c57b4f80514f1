"""Random applications: what they compute, how they are configured, what happened to them, and how their changelogs are damaged.

All is decided by a seed, so that a case that fails can be run again. Times lie within the last hour: the broker's own retention, which
deletes by the clock, then takes nothing.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support.generated_keeping import keeping, surroundings
from support.generated_stores import LITTLE, MUCH, Config, Filled, Made, of_streams, of_tables, wrong
from support.programs import Record

HOUR_MS = 3_600_000
LARGE_CACHE = str(10 * 1024 * 1024)

NOTHING, EMPTIED, ONE_PARTITION, LOST_KEYS, OLD_VALUES = "nothing", "emptied", "one partition", "lost keys", "old values"
DAMAGES = (NOTHING, NOTHING, EMPTIED, EMPTIED, ONE_PARTITION, ONE_PARTITION, ONE_PARTITION, LOST_KEYS, LOST_KEYS, OLD_VALUES, OLD_VALUES)
UNINTERRUPTED, RESTARTED, STARTED_LATE, SKIPPED = "uninterrupted", "restarted", "started late", "skipped"
HISTORIES = (UNINTERRUPTED, RESTARTED, RESTARTED, RESTARTED, STARTED_LATE, SKIPPED)
HISTORIES_OF_LIGHT = (UNINTERRUPTED, RESTARTED, RESTARTED)
STOPPED, IN_THE_MIDDLE, CAUGHT_UP = "stopped", "READY", "CAUGHT_UP"
ENDS = (STOPPED, STOPPED, STOPPED, STOPPED, IN_THE_MIDDLE, CAUGHT_UP)
"""How a run ends: with a clean stop, or killed when it has said this."""
WRONG, WRONG_OF_LIGHT = 0.2, 0.05
"""The share of files of stores that are wrong."""
OF_TABLES = 0.25
"""The share of applications that are tables of tables."""
_TRIES = 8


@dataclass(frozen=True)
class Life:
    """An application, its configuration and its history.

    :param streams: what the state file says of the application
    :param is_told: and that is all that makes a difference, together with ``start``
    :param delays: how many milliseconds after the first each instance begins
    :param says_start: the file says where the application began
    :param is_light: it has many keys and is damaged lightly: only then can all of it be in order in the end
    """

    made: Made
    guarantee: str
    streams: Mapping[str, Any]
    is_told: bool
    history: str
    delays: tuple[int, ...]
    says_start: bool
    is_light: bool

    @property
    def application(self) -> str:
        return self.made.specification.application

    @property
    def isolation(self) -> str:
        """Return what a restore of its changelogs reads."""
        return "read_committed" if self.guarantee == "exactly_once_v2" else "read_uncommitted"

    def runs_in(self, part: int, parts: int) -> bool:
        """Return whether the application runs when this part of its input is there."""
        first = parts - 1 if self.history == UNINTERRUPTED else 1 if self.history == STARTED_LATE else 0
        return part >= first

    def state_file(self, files: Mapping[str, Mapping[str, Any]], starts: Mapping[tuple[str, int], int]) -> str:
        """Return a state file, as JSON, of which YAML takes any.

        :param files: what it says of each store
        :param starts: where the application began, by topic and partition
        """
        stores = {name: _with_start(file, starts) if self.says_start else file for name, file in files.items()}
        return json.dumps({"application": self.application, "streams": self.streams, "stores": stores})

    def __str__(self) -> str:
        note = "" if self.is_told else ", not stated"
        return (
            f"{self.history}{note}, {len(self.delays)} instances, {json.dumps(self.streams)}, {self.made.specification.as_json()['config']}"
        )


def _with_start(file: Mapping[str, Any], starts: Mapping[tuple[str, int], int]) -> dict[str, Any]:
    origin = file["from"]
    names = origin.get("topics") or [name for name in [origin.get("topic")] if name]
    offsets = {name: {str(partition): offset for (topic, partition), offset in starts.items() if topic == name} for name in names}
    if not names:
        return dict(file)
    return {**file, "from": {**origin, "start": offsets if "topics" in origin else offsets[names[0]]}}


@dataclass(frozen=True)
class Batch:
    """Applications that live in one process, so that they share the version of Kafka Streams and its runs.

    :param ends: how each of its runs ends
    :param cuts: after which share of its inputs
    :param around: variables of the environment in which they run; None: that of the tests, in a JVM that they share
    """

    seed: str
    version: str
    ends: tuple[str, ...]
    lives: tuple[Life, ...]
    cuts: tuple[float, ...]
    around: Mapping[str, str] | None = None

    @property
    def parts(self) -> int:
        """Return into how many parts the inputs are divided; the applications end after each."""
        return len(self.ends)

    def arriving(self, part: int) -> tuple[dict[str, Sequence[Record]], dict[str, Sequence[Record]]]:
        """Return the records of each topic that arrive before this run, and those that are aborted before them."""
        inputs = [one for life in self.lives for one in life.made.inputs]
        return (
            {one.topic: self._part_of(one.records, part) for one in inputs},
            {one.topic: self._part_of(one.aborted, part) for one in inputs if one.aborted},
        )

    def _part_of(self, records: Sequence[Record], part: int) -> Sequence[Record]:
        first, last = (0, *self.cuts)[part : part + 2]
        return records[int(len(records) * first) : int(len(records) * last)]


def batch(seed: str, name: str, sizes: Sequence[int], versions: Sequence[str], now: float | None = None, kept: Path | None = None) -> Batch:
    """Return applications.

    :param sizes: how many stores each has, or a few more; the last one is damaged lightly
    :param kept: their programs keep fields and read what is around them, such as this file, and restart at random points
    :param versions: of Kafka Streams, one of which they use
    :param now: seconds since the epoch
    """
    random_ = random.Random(seed)
    version = random_.choice(versions)
    parts = random_.choice((2, 3, 5) if kept else (2, 2, 3))
    ends = [STOPPED if kept else random_.choice(ENDS) for _ in range(parts)]
    cuts = sorted(random_.random() for _ in ends[1:]) if kept else [(at + 1) / parts for at in range(parts - 1)]
    if ends[-1] == IN_THE_MIDDLE:  # then its transactions would stay open for longer than a test should wait
        ends[-1] = CAUGHT_UP
    start = int((now or time.time()) * 1000) - HOUR_MS
    last = len(sizes) - 1
    made = tuple(
        _life(random_, f"{name}-{'abcdefgh'[at]}", size, version, ends, start, is_light=at == last > 0, kept=kept)
        for at, size in enumerate(sizes)
    )
    return Batch(seed, version, tuple(ends), made, (*cuts, 1), surroundings(random_) if kept else None)


def _life(
    random_: random.Random,
    application: str,
    size: int,
    version: str,
    ends: Sequence[str],
    start: int,
    *,
    is_light: bool,
    kept: Path | None,
) -> Life:
    guarantee = random_.choice(("at_least_once", "exactly_once_v2"))
    cached, history = random_.random() < 0.4, random_.choice(HISTORIES_OF_LIGHT if is_light or kept else HISTORIES)
    exactly_once = guarantee == "exactly_once_v2"
    leaves_out = not exactly_once and random_.random() < 0.3
    config: Config = (
        ("processing.guarantee", guarantee),
        ("statestore.cache.max.bytes", LARGE_CACHE if cached else "0"),
        ("commit.interval.ms", random_.choice(("100", "300", "1000"))),
        ("num.stream.threads", random_.choice(("1", "2"))),
        ("session.timeout.ms", "6000"),  # for this long, one that was killed is still a member
        *((("main.consumer.isolation.level", "read_committed"),) if leaves_out else ()),
    )
    if random_.random() < OF_TABLES and not is_light and not kept:
        made = of_tables(random_, application, size, start, config)
    else:
        timed, aborts = random_.random() < 0.25, random_.random() < 0.3
        made = of_streams(random_, application, size, start, config, MUCH if is_light else LITTLE, timed=timed, aborts=aborts)
        if kept:
            made = keeping(random_, made, kept)
    streams = {"version": version.rpartition(".")[0], "guarantee": guarantee, "cache": cached}
    says_isolation = random_.random() < 0.7
    if leaves_out and says_isolation:
        streams["isolation"] = "read_committed"
    says_start = history == STARTED_LATE and random_.random() < 0.5  # tables are made of others: all of them say it, or none
    crashed = not exactly_once and IN_THE_MIDDLE in ends and history != UNINTERRUPTED
    is_told = not (
        history == SKIPPED
        or (history == STARTED_LATE and not says_start)
        or (leaves_out and not says_isolation)
        or crashed  # what was counted twice then, no file can say
    )
    delays = (0, *(random_.choice((0, 500, 2000)) for _ in range(random_.choice((0, 0, 1)))))
    return Life(made, guarantee, streams, is_told, history, delays, says_start, is_light)


@dataclass(frozen=True)
class Case:
    """What becomes of one store: a damage of its changelog, what the state file says of it, and what kops is asked.

    :param file_is_right: that is all that makes a difference
    :param damaged: what ``--damaged`` names, if anything
    :param verifies: kops only compares
    :param partition: that is lost, where one is, and else one that is called damaged: a number that is divided by how many there are
    """

    filled: Filled
    file: Mapping[str, Any]
    file_is_right: bool
    damage: str
    damaged: str = ""
    verifies: bool = False
    partition: int = 0

    @property
    def store(self) -> str:
        return self.filled.store

    @property
    def what(self) -> tuple[Any, ...]:
        """Return what makes it another case than an earlier one of the same store."""
        at = (self.partition % 6,) if self.damage == ONE_PARTITION else ()
        damaged = self.damaged if self.damage != EMPTIED else ""
        return json.dumps(self.file), self.damage, self.verifies and self.damage == NOTHING, damaged, *at

    def __str__(self) -> str:
        damaged = f", --damaged {self.damaged}" if self.damaged else ""
        asked = "verify" if self.verifies else "rebuild"
        return f"{self.store} ({'right' if self.file_is_right else 'wrong'} file, {self.damage}{damaged}, {asked}): {json.dumps(self.file)}"


@dataclass
class Rounds:
    """The cases of an application: in a round, one of each store of which something new was found.

    One that is damaged lightly is emptied and rebuilt first, and then loses some keys of one store, while the others are in order.

    :param count: of cases that no earlier round had
    """

    seed: str
    life: Life
    version: str
    count: int = 0
    known: set[tuple[str, tuple[Any, ...]]] = field(default_factory=set)

    def cases(self, number: int) -> list[Case]:
        """Return the cases of a round."""
        random_ = random.Random(f"{self.seed}-{self.life.application.rpartition('-')[2]}-{number}")
        found, stores = [], self.life.made.stores
        chosen = random_.choice(stores)
        for filled in stores:
            for _try in range(_TRIES):
                case = _case(random_, filled, self.life, self.version)
                if self.life.is_light and not filled.is_versioned:
                    damage = EMPTIED if number == 0 else LOST_KEYS if filled is chosen else NOTHING
                    case = replace(case, damage=damage, damaged="", verifies=False)
                is_new = (filled.store, case.what) not in self.known
                if is_new or self.life.is_light:
                    self.known.add((filled.store, case.what))
                    self.count += is_new
                    found.append(case)
                    break
        return found


def _case(random_: random.Random, filled: Filled, life: Life, version: str) -> Case:
    share = WRONG_OF_LIGHT if life.is_light else WRONG
    said = wrong(random_, filled.file, optional=version >= "4") if random_.random() < share else None
    damage = random_.choice(DAMAGES)
    if filled.file.get("partitioner"):  # whose keys are in partitions that only the changelog tells
        damage = random_.choice((NOTHING, LOST_KEYS, OLD_VALUES))
    partition, damaged = random_.randrange(6), ""
    if damage in (LOST_KEYS, OLD_VALUES, ONE_PARTITION):
        damaged = random_.choice(("", "", filled.store, f"{filled.store}:{{partition}}"))
    if filled.is_versioned:  # each of its records is a version: nothing can be put back
        damage, damaged = NOTHING, ""
    verifies = damage == NOTHING or random_.random() < 0.2
    return Case(filled, said or filled.file, life.is_told and said is None, damage, damaged, verifies, partition)
