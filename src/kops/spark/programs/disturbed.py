"""A task is run as it is and once more, disturbed by all that may be otherwise in the history of the application and must not matter.

Its records come in another order that is legal too, its program begins afresh between them, and its JVM has other surroundings. Keys that
are the same in both runs depend on none of that, as far as these two can show; of those that differ single disturbances say on what. What
no run disturbs is what is outside of the process, such as a database, and the records themselves.

A task that reads one partition is given a sample of it, twice: as it is, and disturbed. What differs there is as certain as with all: some
records of a partition, in their order, are an input too that the program might have had. That nothing differs says less. So the sample has
records that decide about lost keys, with those before each, and the program begins afresh before them, and before such as are late.

The tasks of a sub-topology run the same code: of many, ``MOST_SAMPLED`` are given a sample when all have run, those first that miss most
keys; and of those that are given all of their input again, the others' program begins afresh seldom.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kops.core.errors import OperationFailed
from kops.core.streams.program_doubts import BACKWARD, BY_TIME, FORWARD
from kops.gateways.machine.program import OTHER_SURROUNDINGS, CannotBeginAfresh
from kops.spark.programs.models import BRIEF, SAMPLE, SELDOM
from kops.spark.programs.orders import DifferingKeys
from kops.spark.programs.spill import zip_parts
from kops.spark.programs.stores import unexpired_rows
from kops.spark.programs.task_run import FEW, Way, inputs_of, run_once, sliced
from kops.spark.programs.worker_program import end_program

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray

    from kops.formats import runner_frames as frames
    from kops.spark.programs.models import ProgramTask, Run, StoreTask
    from kops.spark.programs.task_output import TaskOutput
    from kops.spark.reading.batch_source import Read

RESTARTS, ORDER, OFFSETS, CHANCE, TOGETHER = "restarts", "order", "offsets", "chance", "several"
"""What a key may depend on, beside ``OTHER_SURROUNDINGS``: chance is what differs between runs that are not disturbed; several, what only
all disturbances together show."""
MOST_SAMPLED = 2
"""Of how many tasks of a sub-topology, and in how many the program begins afresh often, which takes as long as hundreds of thousands of
records."""
_OFTEN = 8
_PREFIX = 4096
_BEFORE = 8
_PLACES = 64
_MANY = 100_000
_POINTS, _FIRST, _SPECIAL = 16, 4, 12
"""After how many records of a task's input the program begins afresh: spread, of the first ones, and before those that matter most."""


@dataclass
class Compared:
    """What a task wrote in two ways.

    :param passed: how many records of those that it passed on are others
    """

    stores: Mapping[str, DifferingKeys]
    passed: int = 0

    @property
    def differs(self) -> bool:
        return self.passed > 0 or any(each.keys for each in self.stores.values())


@dataclass
class _Given:
    """What a task is given each time.

    :param sample: of its one partition; None: all that it reads
    :param restarts: after how many records its program begins afresh
    :param rarely: it commits often as it is, so that caches are flushed rarely when it is disturbed
    """

    sample: Sequence[frames.Batch] | None
    restarts: Sequence[int]
    rarely: bool


@dataclass
class Shown:
    """What disturbing a task has shown.

    :param not_restarted: why the program did not begin afresh
    :param depends_on: of each store, and under None of what is passed on
    :param others: what the task wrote disturbed
    """

    compared: Compared
    records: int = 0
    restarts: int = 0
    thrown: str | None = None
    not_restarted: str | None = None
    depends_on: dict[str | None, set[str]] = field(default_factory=dict)
    others: list[TaskOutput] = field(default_factory=list)

    def facts(self, stores: Iterable[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Return the facts of the task, and of each store."""
        of_task = {
            "disturbed": self.records,
            "restarts": self.restarts,
            "thrown": self.thrown,
            "not_restarted": self.not_restarted,
            "passed_differing": self.compared.passed,
            "passed_depends_on": sorted(self.depends_on.get(None, ())),
        }
        return of_task, {name: {**self.compared.stores[name].facts, "depends_on": sorted(self.depends_on.get(name, ()))} for name in stores}


@dataclass(frozen=True)
class Runs:
    """The runs of a task."""

    run: Run
    task: ProgramTask
    read: Read

    def once(self, way: Way, given: _Given | None = None, *, apart: bool = False) -> tuple[TaskOutput, dict[str, Any]]:
        """Run it over all that it reads, or what is given."""
        return run_once(self.run, self.task, way, self.read, sample=given.sample if given else None, apart=apart)

    @property
    def inputs(self) -> Iterator[frames.Batch]:
        """The records of its one topic."""
        (found,) = inputs_of(self.run, self.task, self.read).values()
        return found


def after_all_ran(tasks: Sequence[ProgramTask], ran: Mapping[str, Mapping[str, Any]]) -> list[ProgramTask]:
    """Return the tasks of a sub-topology, all of which have run, with how each is disturbed now.

    Those are given a sample where most keys are lost, and then most was read. If all of them together read no more than a sample, the
    others get theirs too, so that all of it is disturbed.

    :param ran: their facts, by name
    """

    def order(task: ProgramTask) -> tuple[int, int]:
        facts = ran[task.name]
        return -sum(each["lost_keys"] for each in facts["stores"].values()), -facts["records"]

    found = sorted((task for task in tasks if task.disturbed == SAMPLE and ran[task.name]["records"]), key=order)
    others = BRIEF if sum(ran[task.name]["records"] for task in found) <= _PREFIX else ""
    how = {task.name: SAMPLE if number < MOST_SAMPLED else others for number, task in enumerate(found)}
    return [replace(task, disturbed=how.get(task.name, "")) for task in tasks]


def disturb(runs: Runs, written: TaskOutput | None, facts: Mapping[str, Any], lost: Mapping[str, Sequence[bytes]]) -> Shown:
    """Run a task again, disturbed, and compare.

    :param written: what it wrote as it is, where that is still there; and ``facts`` what happened then
    :param lost: some keys that its changelogs lack, by store
    """
    task, sampled = runs.task, runs.task.disturbed in (SAMPLE, BRIEF)
    shown = Shown(Compared({store.name: DifferingKeys() for store in task.stores}))
    if not task.disturbed or not facts["records"]:
        return shown
    whole = _Given(None, _spread(facts["records"], small=True), _commits_often(facts))
    given = _sampled(runs, facts, lost) if sampled else whole
    if task.disturbed in (SELDOM, BRIEF):
        given.restarts = given.restarts[:: max(1, len(given.restarts) // FEW)]
    if written is None or (sampled and (task.passes_on or _length(given.sample or ()) < facts["records"])):
        written, facts = runs.once(Way(), given, apart=True)
    shown.records = facts["records"]
    try:
        other, more = _once_disturbed(runs, given, shown, apart=sampled)
    except OperationFailed as error:
        shown.thrown = error.message
    else:
        shown.others.append(other)
        shown.restarts, shown.compared = more["restarts"], _compared(task, written, *shown.others)
        if not sampled and len(task.orders) == 1:
            shown.compared.passed = _filed_differing(runs)
    if shown.thrown or shown.compared.differs:
        _explain(runs, given, written, shown)
    return shown


def _once_disturbed(runs: Runs, given: _Given, shown: Shown, *, apart: bool) -> tuple[TaskOutput, dict[str, Any]]:
    way = Way(BACKWARD, OTHER_SURROUNDINGS, given.restarts, offsets=True, rarely=given.rarely)
    try:
        return runs.once(way, given, apart=apart)
    except CannotBeginAfresh as error:
        shown.not_restarted, given.restarts = error.message, ()
        return runs.once(replace(way, restarts=()), given, apart=apart)


def _compared(task: ProgramTask, one: TaskOutput, *others: TaskOutput) -> Compared:
    stores = {store.name: _differing([one, *others], store, task.partition) for store in task.stores}
    return Compared(stores, _passed_differing(one, others[0]))


def _differing(written: Sequence[TaskOutput], store: StoreTask, partition: int) -> DifferingKeys:
    differing = DifferingKeys()
    for first, *others in zip_parts(*(unexpired_rows(each, store) for each in written)):
        differing.add(first, others, partition)
    return differing


def _passed_differing(one: TaskOutput, other: TaskOutput) -> int:
    import pyarrow

    count = 0
    for topic in {*one.passed, *other.passed}:
        known = next(each.passed[topic][0].schema for each in (one, other) if topic in each.passed).empty_table()
        count += _unlike(*(pyarrow.concat_tables([known, *each.passed.get(topic, ())]) for each in (one, other)))
    return count


def _filed_differing(runs: Runs) -> int:
    """Return how many records differ of what went into files of both orders."""
    import pyarrow
    from pyarrow import ipc

    found = dict[tuple[str, str, str], list[pyarrow.Table]]()
    name = f"{runs.task.subtopology:05}-{runs.task.partition:05}.arrow"
    for topic in runs.task.passes_on:
        for order in (BY_TIME, BACKWARD):
            for file in runs.run.repartitioned(topic, 0, order).parent.glob(f"*/{name}"):
                table = ipc.open_file(pyarrow.memory_map(str(file))).read_all()
                found.setdefault((topic, file.parent.name, name), []).append(table)
    return sum(_unlike(*each) if len(each) > 1 else each[0].num_rows for each in found.values())


def _unlike(first: pyarrow.Table, second: pyarrow.Table) -> int:
    """Return how many rows of two tables are others, or there in one only."""
    same = min(first.num_rows, second.num_rows)
    one, other = first.slice(0, same), second.slice(0, same)
    count: int = abs(first.num_rows - second.num_rows)
    if not one.equals(other):
        count += sum(mine != theirs for mine, theirs in zip(one.to_pylist(), other.to_pylist(), strict=True))
    return count


class _Search:
    """By what a task's output differs: single disturbances are tried until all of it is explained."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._wanted: dict[str | None, set[bytes]] = {name: set(each.keys) for name, each in shown.compared.stores.items()}
        self._wanted[None] = {b""} if shown.compared.passed else set()
        self._left = {name: set(keys) for name, keys in self._wanted.items()}

    @property
    def is_over(self) -> bool:
        return not any(self._left.values()) and self._shown.thrown is None

    def take(self, what: str, found: Compared) -> None:
        """Note what a disturbance alone has shown."""
        for name, keys in [*((name, each.keys) for name, each in found.stores.items()), (None, {b""} if found.passed else set[bytes]())]:
            if self._wanted[name] & keys:
                self._shown.depends_on.setdefault(name, set()).add(what)
                self._left[name] -= keys
            if what == CHANCE:  # they differ in each run, whatever is disturbed
                self._wanted[name] -= keys

    def end(self) -> None:
        for name, keys in self._left.items():
            if keys:
                self._shown.depends_on.setdefault(name, set()).add(TOGETHER)


def _explain(runs: Runs, given: _Given, written: TaskOutput, shown: Shown) -> None:
    search = _Search(shown)
    for what, way in _single(given, ordered=len(runs.task.orders) > 1):
        if search.is_over:
            break
        try:
            other, _ = runs.once(way, given, apart=True)
        except OperationFailed as error:
            shown.thrown = f"{error.message} (by {what} alone)"
            break
        finally:
            if way.surroundings:
                end_program(way.surroundings)
        search.take(what, _compared(runs.task, written, other))
        if what == ORDER and any(ORDER in each for each in shown.depends_on.values()):
            _look_for_more(runs, given, written, shown)
    search.end()


def _look_for_more(runs: Runs, given: _Given, written: TaskOutput, shown: Shown) -> None:
    """Find keys that depend on the order, and are the same in the one that was tried by chance: try a third one."""
    with suppress(OperationFailed):
        other, _ = runs.once(Way(FORWARD, rarely=not given.rarely), given, apart=True)
        shown.others.append(other)
        shown.compared = _compared(runs.task, written, *shown.others)


def _single(given: _Given, *, ordered: bool) -> Iterator[tuple[str, Way]]:
    yield CHANCE, Way(surroundings=("same",))
    if ordered:
        yield ORDER, Way(BACKWARD, rarely=given.rarely)
    if given.restarts:
        yield RESTARTS, Way(restarts=given.restarts)
    yield OFFSETS, Way(offsets=True)
    for name in OTHER_SURROUNDINGS:
        yield name, Way(surroundings=(name,))


def _sampled(runs: Runs, facts: Mapping[str, Any], lost: Mapping[str, Sequence[bytes]]) -> _Given:
    """Choose what a task that reads one partition is given."""
    import numpy

    sample, places, special = _chosen(runs.inputs, _input_keys(runs.task, lost))
    before = numpy.searchsorted(places, special)
    late = numpy.flatnonzero(_late(sample))
    matter = [*_some(before, _SPECIAL), *_some(late, _SPECIAL - len(before[:_SPECIAL]))]
    restarts = sorted({*_spread(_length(sample), small=not matter), *(int(each) for each in matter if each)})
    return _Given(sample, restarts, _commits_often(facts))


def _commits_often(facts: Mapping[str, Any]) -> bool:
    """Whether caches are flushed after so few records that to flush them at once makes little difference."""
    return bool(facts["commits"] * _OFTEN > facts["records"])


def _length(batches: Sequence[frames.Batch]) -> int:
    return sum(len(each.offset) for each in batches)


def _some(places: NDArray[numpy.int64], most: int) -> list[int]:
    """Return some of the places, spread over all."""
    step = max(1, -(-len(places) // most)) if most > 0 else 1
    return [int(each) for each in places[::step]][: max(0, most)]


def _input_keys(task: ProgramTask, lost: Mapping[str, Sequence[bytes]]) -> list[bytes]:
    """Return the keys of lost rows as records of the input may have them: those of windows without their time."""
    found = [key[: store.time_at] if store.time_at else key for store in task.stores for key in lost.get(store.name, ())]
    return list(dict.fromkeys(found))


def _chosen(
    batches: Iterable[frames.Batch], keys: Sequence[bytes]
) -> tuple[list[frames.Batch], NDArray[numpy.int64], NDArray[numpy.int64]]:
    """Return the first records of an input, and those of some keys, the last of them if they are many, each with some before it.

    It is read once, and only so far as is needed.

    :return: the records, their places, and the places of those keys
    """
    import numpy

    kept: list[tuple[frames.Batch, NDArray[numpy.int64]]] = []
    special = numpy.empty(0, numpy.int64)
    for (start, batch, here), (_, _, after) in pairwise(_with_places(batches, keys)):
        special = numpy.concatenate([special, here])[-_PLACES:]
        places = numpy.arange(start, start + len(batch.offset))
        places = places[(places < _PREFIX) | numpy.isin(places, _around(numpy.concatenate([here, after])))]
        if len(places):
            kept.append((sliced(batch, places - start), places))
        if len(special) == _PLACES:  # what was found first is no longer among the last
            kept = [(rows, at) for rows, at in kept if at[0] < _PREFIX or at[-1] >= special[0] - _BEFORE]
    wanted = _around(special)
    sample: list[frames.Batch] = []
    found = [numpy.empty(0, numpy.int64)]
    for rows, places in kept:
        chosen = (places < _PREFIX) | numpy.isin(places, wanted)
        if chosen.any():
            sample.append(rows if chosen.all() else sliced(rows, numpy.flatnonzero(chosen)))
            found.append(places[chosen])
    return sample, numpy.concatenate(found), special


def _around(special: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    import numpy

    return (special[:, None] - numpy.arange(_BEFORE + 1)).ravel()


def _with_places(batches: Iterable[frames.Batch], keys: Sequence[bytes]) -> Iterator[tuple[int, frames.Batch, NDArray[numpy.int64]]]:
    """Yield where each batch begins, and where in it some keys are; at last an empty one."""
    import numpy
    import pyarrow
    from pyarrow import compute

    start, wanted = 0, pyarrow.array(keys, pyarrow.binary())
    for batch in batches:
        last, here = batch, numpy.empty(0, numpy.int64)
        if keys:
            here = start + numpy.flatnonzero(compute.is_in(batch.key, value_set=wanted).to_numpy(zero_copy_only=False))
        yield start, batch, here[-_PLACES:]
        start += len(batch.offset)
        if not keys and start >= _PREFIX:
            break
    if start:
        yield start, sliced(last, slice(0)), numpy.empty(0, numpy.int64)


def _late(sample: Sequence[frames.Batch]) -> NDArray[numpy.bool_]:
    """Return of each record whether one before it is of a later time."""
    import numpy

    times = numpy.concatenate([each.timestamp for each in sample] or [numpy.empty(0, numpy.int64)])
    return times < numpy.maximum.accumulate(times)


def _spread(count: int, *, small: bool) -> list[int]:
    """Return after how many records of an input the program begins afresh.

    Each time the stores are restored, which takes long after much of a large input: there after an eighth, a sixteenth, and so on.

    :param small: also after each of the first
    """
    numbers = range(1, _POINTS + 1)
    points = {count * each // (_POINTS + 1) if count <= _MANY else count >> each + 2 for each in numbers}
    return sorted((points | (set(range(1, _FIRST + 1)) if small else set())) - {0})
