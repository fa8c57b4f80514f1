"""Random applications: what they compute, how they are configured, what happened to them, and how their changelogs are damaged.

All is decided by a seed, so that a case that fails can be run again. Times lie within the last hour: the broker's own retention, which
deletes by the clock, then takes nothing.
"""

from __future__ import annotations

import json
import random
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from support.programs import KeyBy, Program, Record, Several, Where, Window
from support.streams import Entry, compacted_view
from support.tables import TableProgram

SCHEMA = "id bigint, item string, price double"
ITEMS = ("apple", "pear", "plum", "fig", "ключ")
KEYS = tuple(f"k{number}" for number in range(8))
HOUR_MS = 3_600_000
RECORDS = 60
"""Of each input."""
LARGE_CACHE = str(10 * 1024 * 1024)

NOTHING, EMPTIED, ONE_PARTITION, LOST_KEYS, OLD_VALUES = "nothing", "emptied", "one partition", "lost keys", "old values"
DAMAGES = (NOTHING, EMPTIED, EMPTIED, ONE_PARTITION, ONE_PARTITION, LOST_KEYS, OLD_VALUES)
UNINTERRUPTED, RESTARTED, STARTED_LATE, SKIPPED = "uninterrupted", "restarted", "started late", "skipped"
HISTORIES = (UNINTERRUPTED, RESTARTED, RESTARTED, STARTED_LATE, SKIPPED)
LIES = 0.2
"""The share of windowed stores whose file leaves the retention and the grace out."""
OF_TABLES = 0.25
"""The share of applications that are tables of tables."""


class Specification(Protocol):
    """What ``Topologies.java`` builds."""

    @property
    def application(self) -> str: ...

    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Input:
    """A topic and what is written to it."""

    topic: str
    partitions: int
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Case:
    """One store of an application.

    :param form: format of its values
    :param file: what the state file says of it
    :param file_is_right: that is all that makes a difference
    :param damage: of its changelog
    :param says_start: the file says where the application began
    """

    store: str
    changelog: str
    form: str
    file: Mapping[str, Any]
    file_is_right: bool
    damage: str
    window: Window | None = None
    says_start: bool = False

    def __str__(self) -> str:
        return f"{self.store} ({'right' if self.file_is_right else 'wrong'} file, {self.damage}): {json.dumps(self.file)}"


@dataclass(frozen=True)
class Batch:
    """Stores of one application, which share its configuration and its history.

    :param parts: into how many the inputs are divided; the application is stopped after each
    :param instances: of the application, side by side
    """

    seed: str
    specification: Specification
    cases: tuple[Case, ...]
    inputs: tuple[Input, ...]
    guarantee: str
    cached: bool
    version: str
    history: str
    parts: int
    instances: int

    @property
    def application(self) -> str:
        return self.specification.application

    def state_file(self, starts: Mapping[tuple[str, int], int]) -> str:
        """Return the state file, as JSON, of which YAML takes any.

        :param starts: where the application began, by topic and partition
        """
        found = {case.store: _with_start(case.file, starts) if case.says_start else case.file for case in self.cases}
        streams = {"version": self.version.rpartition(".")[0], "guarantee": self.guarantee, "cache": self.cached}
        return json.dumps({"application": self.application, "streams": streams, "stores": found})

    def arriving(self, part: int) -> dict[str, Sequence[Record]]:
        """Return the records of each topic that arrive before this start of the application."""
        return {
            one.topic: one.records[len(one.records) * part // self.parts : len(one.records) * (part + 1) // self.parts]
            for one in self.inputs
        }


def _with_start(file: Mapping[str, Any], starts: Mapping[tuple[str, int], int]) -> dict[str, Any]:
    origin = file["from"]
    if "topic" not in origin:
        return dict(file)
    offsets = {str(partition): offset for (topic, partition), offset in starts.items() if topic == origin["topic"]}
    return {**file, "from": {**origin, "start": offsets}}


def batch(seed: str, application: str, size: int, versions: Sequence[str], now: float | None = None) -> Batch:
    """Return an application.

    :param size: so many stores that streams fill, or half as many programs of tables
    :param versions: of Kafka Streams, one of which it uses
    :param now: seconds since the epoch
    """
    random_ = random.Random(seed)
    guarantee = random_.choice(("at_least_once", "exactly_once_v2"))
    cached, history = random_.random() < 0.4, random_.choice(HISTORIES)
    config = (
        ("processing.guarantee", guarantee),
        ("statestore.cache.max.bytes", LARGE_CACHE if cached else "0"),
        ("commit.interval.ms", random_.choice(("100", "300", "1000"))),
        ("num.stream.threads", random_.choice(("1", "2"))),
    )
    start = int((now or time.time()) * 1000) - HOUR_MS
    made = _of_tables if random_.random() < OF_TABLES else _of_streams
    specification, cases, inputs = made(random_, application, size, start, config)
    if history == STARTED_LATE:
        told = random_.random() < 0.5  # tables are made of others: all of them say it, or none
        cases = [replace(case, says_start=told, file_is_right=case.file_is_right and told) for case in cases]
    elif history == SKIPPED:
        cases = [replace(case, file_is_right=False) for case in cases]
    return Batch(
        seed,
        specification,
        tuple(cases),
        tuple(inputs),
        guarantee,
        cached,
        random_.choice(versions),
        history,
        parts=1 if history == UNINTERRUPTED else random_.choice((2, 3)),
        instances=random_.choice((1, 1, 2)),
    )


Config = tuple[tuple[str, str], ...]
Made = tuple[Specification, list[Case], list[Input]]


def _of_streams(random_: random.Random, application: str, size: int, start: int, config: Config) -> Made:
    """Return programs beside each other, each with a topic and a store of its own."""
    programs, cases, inputs = [], [], []
    for number in range(size):
        store = f"s{number}"
        program = random_.choice((_plain_aggregate, _plain_aggregate, _by_new_key, _windowed, _table))(random_)
        program = replace(program, application=application, topic=f"{application}-in-{store}", store=store)
        if program.key_by:
            program = replace(program, key_by=replace(program.key_by, repartition=store))
        partitions = random_.choice((1, 2, 3))
        file, right = dict(program.state_file()["stores"][store]), True
        if program.window and random_.random() < LIES:
            kept = {name: value for name, value in file["window"].items() if name not in ("retention", "grace")}
            file["window"], right = {**kept, "grace": "0ms"}, False
        programs.append(program)
        inputs.append(Input(program.topic, partitions, _records(random_, program, start, partitions)))
        cases.append(Case(store, program.changelog, program.format, file, right, random_.choice(DAMAGES), program.window))
    return Several(tuple(programs), config), cases, inputs


def _of_tables(random_: random.Random, application: str, size: int, start: int, config: Config) -> Made:
    """Return programs of tables beside each other, under names of their own."""
    from support.table_programs import BY_TIME, foreign, inputs

    known = {
        **{name: program for name, (program, _stores, _mark) in BY_TIME.items() if not name.startswith("versioned")},
        **{kind: foreign(kind) for kind in ("inner", "left")},
    }
    tables: list[dict[str, Any]] = []
    stores: dict[str, Any] = {}
    found: list[Input] = []
    cases: list[Case] = []
    for number in range(size // 2):
        program = known[random_.choice(sorted(known))]
        names = {one["name"]: f"{one['name']}{number}" for one in program.tables}
        topics = {one["topic"]: f"{application}-{one['topic']}{number}" for one in program.tables if "topic" in one}
        made = [_renamed(one, names, topics) for one in program.tables]
        partitions = random_.choice((1, 2, 3))
        several = inputs(program, 40, by_time=False)
        case = random_.choice(several)
        for topic, records in case.topics.items():
            placed = [
                replace(one, timestamp=start + 1000 * one.timestamp, headers=(), partition=len(one.key or b"") % partitions)
                for one in records
            ]
            found.append(Input(topics[topic], partitions, tuple(placed)))
        forms = {one["name"]: one.get("value") or one.get("aggregate", one.get("join", {})).get("as", "string") for one in made}
        for store, body in program.stores.items():
            stores[names[store]] = file = _renamed(body, names, topics)
            cases.append(
                Case(names[store], f"{application}-{names[store]}-changelog", forms[names[store]], file, True, random_.choice(DAMAGES))
            )
        tables += made
    return TableProgram(tuple(tables), stores, application, config=config), cases, found


def _renamed(body: Any, names: Mapping[str, str], topics: Mapping[str, str], at: str = "") -> Any:
    """Return a part of a specification, or of a state file, under other names."""
    if isinstance(body, Mapping):
        return {name: _renamed(value, names, topics, name) for name, value in body.items()}
    if at == "topic":
        return topics[body]
    return names.get(body, body) if at in ("name", "table", "left", "right") else body


def _plain_aggregate(random_: random.Random) -> Program:
    kind = random_.choice(("count", "sum", "min", "max", "first", "last", "concat", "concat_or_delete"))
    return _aggregate(random_, kind)


def _aggregate(random_: random.Random, kind: str, key_by: KeyBy | None = None) -> Program:
    if kind.startswith("concat"):
        return Program(kind, "string", value="string", key_by=replace(key_by, field=None) if key_by else None)
    where = Where(random_.choice(("gt", "le", "ne")), random_.choice((0, 1.5)), "price") if random_.random() < 0.3 else None
    field_, form = random_.choice((("price", "double"), ("id", "long")))
    if kind == "count":
        field_, form = None, "long"
    return Program(kind, form, field_, schema=SCHEMA, where=where, key_by=key_by)


def _by_new_key(random_: random.Random) -> Program:
    kind = random_.choice(("count", "count", "sum", "min", "max", "last", "concat"))
    return _aggregate(random_, kind, KeyBy(field="item"))


def _table(random_: random.Random) -> Program:
    form = random_.choice(("string", "json"))
    return Program("table", form, value=form, schema=SCHEMA)


def _windowed(random_: random.Random) -> Program:
    type_ = random_.choice(("window", "window", "sliding-window", "session"))
    size, grace = random_.choice((1000, 5000)), random_.choice((0, 500, 5000))
    advance = random_.choice((None, size // 5)) if type_ == "window" else None
    least = size * (2 if type_ == "sliding-window" else 1) + grace
    window = Window(type_, size, grace, advance, least * random_.choice((1, 1, 4)))
    kind = random_.choice(("count", "count", "sum", "concat", "last"))
    key_by = KeyBy(field="item") if random_.random() < 0.25 else None
    return replace(_aggregate(random_, kind, key_by), where=None, window=window)


def _records(random_: random.Random, program: Program, start: int, partitions: int) -> tuple[Record, ...]:
    """Return an input: times go on and fall back; some keys and values are null; a key is always in the same partition."""
    made, moment = [], start
    for at in range(RECORDS):
        moment += random_.choice((0, 1, 100, 700, 1500))
        late = random_.choice((0, 0, 0, 1, 400, 2500, 9000))
        key = None if random_.random() < 0.03 else random_.choice(KEYS)
        partition = (KEYS.index(key) if key else at) % partitions
        made.append(Record(key.encode() if key else None, _value(random_, program, at), moment - late, (), partition))
    return tuple(made)


def _value(random_: random.Random, program: Program, at: int) -> bytes | None:
    if random_.random() < 0.06 and not program.window:
        return None
    if program.value == "string":
        if program.key_by:
            return random_.choice(ITEMS).encode()
        return b"" if program.kind == "concat_or_delete" and random_.random() < 0.1 else f"{at},".encode()
    price = random_.choice((-2.5, 0.25, 1.5, 2000.0, 0.1, 3))
    value: dict[str, Any] = {"id": random_.randrange(-5, 10**12), "item": random_.choice(ITEMS), "price": price}
    if random_.random() < 0.04 and not program.window:
        value["price"] = None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Held:
    """What a store held before the damage.

    :param view: of its changelog
    :param needed: the keys that the application still finds in it; of a window store not those that have expired
    """

    view: Mapping[bytes, Entry]
    needed: frozenset[bytes]


def held(window: Window | None, log: Sequence[Record]) -> Held:
    """Return what a store holds, by the log of its changelog.

    A window has expired once it starts (a session: ends) the retention or more before the newest in the task
    (``AbstractRocksDBSegmentedBytesStore``: ``observedStreamTime - retentionPeriod + 1``).
    """
    view = compacted_view(log)
    if window is None:
        return Held(view, frozenset(view))
    assert window.retention

    def moment(key: bytes) -> int:
        found: int = struct.unpack_from(">q", key, len(key) - (16 if window.type == "session" else 12))[0]
        return found

    newest: dict[int | None, int] = {}
    for record in log:
        newest[record.partition] = max(newest.get(record.partition, 0), moment(record.key or b""))
    return Held(view, frozenset(key for key, entry in view.items() if moment(key) > newest[entry.partition] - window.retention))


def contradicts(grade: str, wanted: Held, found: Mapping[bytes, Entry], form: str, *, grouped: bool = False) -> list[str]:
    """Return how what is there now contradicts a class: sentences, none where it does not.

    :param grade: A: bytes, timestamps and partitions; B: values; another one promises nothing
    :param grouped: of a table: B leaves open whether a group that is empty by now is there
    """
    if grade not in ("A", "B"):
        return []

    def may_be_either(entry: Entry) -> bool:
        return grouped and grade == "B" and not any(entry.value)

    said = [f"{key!r} is missing" for key in sorted(wanted.needed - set(found)) if not may_be_either(wanted.view[key])]
    for key, entry in sorted(found.items()):
        original = wanted.view.get(key)
        if original is None and may_be_either(entry):
            continue
        if original is None:
            said.append(f"{key!r} is not in the store: {entry}")
        elif grade == "A" and entry != original:
            said.append(f"{key!r}: {entry} is not {original}")
        elif grade == "B" and _meaning(entry.value, form) != _meaning(original.value, form):
            said.append(f"{key!r}: {entry.value!r} is not {original.value!r}")
    return said


def _meaning(value: bytes, form: str) -> object:
    return json.loads(value) if form == "json" else value
