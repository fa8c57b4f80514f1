"""Random programs of a generated application, each with what the state file says of its store, and random inputs for them."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from support.programs import Headers, KeyBy, Program, Record, Several, Where, Window
from support.streams_cases import BY_HEADER
from support.tables import TableProgram

SCHEMA = "id bigint, item string, price double"
ITEMS = ("apple", "pear", "plum", "fig", "ключ")
HISTORY_MS = 5000
"""That versioned tables keep."""
CUSTOM = "last_letter"
"""A partitioner of ``Topologies.java``."""

Config = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Amount:
    """What each input holds.

    :param keys: how many different ones
    :param items: by which records are grouped again
    :param hurry: by how much sooner the next record follows
    :param late: milliseconds, one of which a record is late
    :param has_partitioners: applications may choose the partitions of keys, which nothing shows when all keys are lost
    """

    records: int
    keys: int
    items: tuple[str, ...]
    hurry: int
    late: tuple[int, ...]
    has_partitioners: bool = True


LITTLE = Amount(60, 8, ITEMS, 1, (0, 0, 0, 1, 400, 2500, 9000))
MUCH = Amount(
    1500, 900, tuple(f"{item}-{number}" for number in range(120) for item in ITEMS), 100, (*[0] * 40, 1, 400, 2500), has_partitioners=False
)
"""Enough for a hundred keys in each partition to be left when most are lost."""


class Specification(Protocol):
    """What ``Topologies.java`` builds."""

    @property
    def application(self) -> str: ...

    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Input:
    """A topic and what is written to it.

    :param aborted: before that, in a transaction that is aborted
    """

    topic: str
    partitions: int
    records: tuple[Record, ...]
    aborted: tuple[Record, ...] = ()


@dataclass(frozen=True)
class Filled:
    """A store of an application.

    :param form: format of its values
    :param file: what a state file says of it that is right
    :param partitions: of its changelog, as far as they are known
    """

    store: str
    changelog: str
    form: str
    file: Mapping[str, Any]
    window: Window | None = None

    @property
    def is_grouped(self) -> bool:
        """Return whether it is grouped from a table."""
        return self.file["from"].get("table") is not None and "key_by" in self.file

    @property
    def is_versioned(self) -> bool:
        return self.file.get("type") == "versioned"


@dataclass(frozen=True)
class Made:
    """The topology of an application, its stores and its inputs."""

    specification: Specification
    stores: tuple[Filled, ...]
    inputs: tuple[Input, ...]


def of_streams(
    random_: random.Random, application: str, size: int, start: int, config: Config, amount: Amount, *, timed: bool, aborts: bool
) -> Made:
    """Return programs beside each other, each with a topic and a store of its own.

    :param timed: records have the time that a header or a field says
    :param aborts: of each input a part was aborted
    """
    programs, stores, inputs = [], [], []
    for number in range(size):
        store = f"s{number}"
        made = random_.choice(
            (_plain_aggregate, _plain_aggregate, _by_new_key, _by_new_key, _windowed, _windowed, _table, _to_table, _merged)
        )
        program = replace(made(random_), application=application, topic=f"{application}-in-{store}", store=store)
        if program.key_by:
            partitioner = program.key_by.partitioner if amount.has_partitioners else None
            program = replace(program, key_by=replace(program.key_by, repartition=store, partitioner=partitioner))
        if program.topics:
            program = replace(program, topics=(program.topic, f"{program.topic}-too"))
        if timed:
            program = replace(program, timestamp=BY_HEADER)
        partitions = random_.choice((1, 2, 3))
        file = dict(program.state_file()["stores"][store])
        if program.key_by and program.key_by.partitioner:
            file["partitioner"] = "custom"
        programs.append(program)
        for topic in program.topics or (program.topic,):
            junk = _records(random_, program, start, partitions, amount)[:8] if aborts else ()
            inputs.append(Input(topic, partitions, _records(random_, program, start, partitions, amount), junk))
        stores.append(Filled(store, program.changelog, program.format, file, program.window))
    return Made(Several(tuple(programs), config), tuple(stores), tuple(inputs))


def of_tables(random_: random.Random, application: str, size: int, start: int, config: Config) -> Made:
    """Return programs of tables beside each other, under names of their own."""
    from support.table_programs import BY_TIME, foreign, inputs

    known = {
        **{name: program for name, (program, _stores, _mark) in BY_TIME.items()},
        **{kind: foreign(kind) for kind in ("inner", "left")},
    }
    tables: list[dict[str, Any]] = []
    files: dict[str, Any] = {}
    topics_of: list[Input] = []
    stores: list[Filled] = []
    number = 0
    while len(stores) < size:
        program = known[random_.choice(sorted(known))]
        names = {one["name"]: f"{one['name']}{number}" for one in program.tables}
        topics = {one["topic"]: f"{application}-{one['topic']}{number}" for one in program.tables if "topic" in one}
        made = [renamed(one, names, topics) for one in program.tables]
        partitions = random_.choice((1, 2, 3))
        case = random_.choice([one for one in inputs(program, 40, by_time=False) if all(one.topics.values())])
        for topic, records in case.topics.items():
            placed = [
                replace(one, timestamp=start + 1000 * one.timestamp, headers=(), partition=len(one.key or b"") % partitions)
                for one in records
            ]
            topics_of.append(Input(topics[topic], partitions, tuple(placed)))
        forms = {one["name"]: one.get("value") or one.get("aggregate", one.get("join", {})).get("as", "string") for one in made}
        for store, body in program.stores.items():
            name = names[store]
            files[name] = file = renamed(body, names, topics)
            stores.append(Filled(name, f"{application}-{name}-changelog", forms[name], file))
        tables += made
        number += 1
    return Made(TableProgram(tuple(tables), files, application, config=config), tuple(stores), tuple(topics_of))


def renamed(body: Any, names: Mapping[str, str], topics: Mapping[str, str], at: str = "") -> Any:
    """Return a part of a specification, or of a state file, under other names; a second is what a millisecond was."""
    if isinstance(body, Mapping):
        return {name: renamed(value, names, topics, name) for name, value in body.items()}
    if at == "topic":
        return topics[body]
    if at in ("history_ms", "history_retention"):
        return HISTORY_MS if at == "history_ms" else f"{HISTORY_MS}ms"
    return names.get(body, body) if at in ("name", "table", "left", "right") else body


def wrong(random_: random.Random, file: Mapping[str, Any], *, optional: bool) -> dict[str, Any] | None:
    """Return what a state file may say of a store that is wrong; None where nothing is known that would be.

    :param optional: the library's version lets a file leave the retention of windows out
    """
    found: list[dict[str, Any]] = []
    origin, window, aggregate = file["from"], file.get("window"), file.get("aggregate") or {}
    if window:
        found += _wrong_windows(window, file, optional=optional)
    if "timestamp" in origin:
        found.append({**file, "from": {name: value for name, value in origin.items() if name != "timestamp"}})
    if "table" not in origin:
        for name in ("where", "partitioner"):
            if name in file:
                found.append({key: value for key, value in file.items() if key != name})
        if aggregate and "where" not in file and isinstance(origin["value"], dict):
            found.append({**file, "where": "value.price > 1.0"})
        kind = next(iter(aggregate), "count")
        other = {"sum": "max", "min": "first", "max": "last", "first": "last", "last": "first"}.get(kind)
        if other and not (window and kind == "sum") and not origin.get("topics"):
            found.append({**file, "aggregate": {other: aggregate[kind], "as": aggregate["as"]}})
    return random_.choice(found) if found else None


def _wrong_windows(window: Mapping[str, str], file: Mapping[str, Any], *, optional: bool) -> list[dict[str, Any]]:
    size = next(name for name in ("size", "difference", "gap") if name in window)
    found: list[dict[str, Any]] = [{**window, size: f"{int(window[size][:-2]) // 2}ms"}]
    if "advance" in window and window["advance"] == window[size]:
        found = []
    if window["grace"] != "0ms":
        found.append({**window, "grace": "0ms"})
    if optional:
        found.append({**{name: value for name, value in window.items() if name != "retention"}, "grace": "0ms"})
    return [{**file, "window": one} for one in found if one != window]


def _plain_aggregate(random_: random.Random) -> Program:
    kind = random_.choice(("count", "sum", "min", "max", "first", "last", "concat", "concat_or_delete"))
    return replace(_aggregate(random_, kind), key=random_.choice(("string", "string", "long")))


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
    how = random_.choice(((None, None), (None, None), (2, None), (3, CUSTOM)))
    return _aggregate(random_, kind, KeyBy(field="item", partitions=how[0], partitioner=how[1]))


def _table(random_: random.Random) -> Program:
    form = random_.choice(("string", "json", "long"))
    return Program("table", form, value=form, schema=SCHEMA, key=random_.choice(("string", "long")))


def _to_table(random_: random.Random) -> Program:
    return replace(_aggregate(random_, "last", random_.choice((None, KeyBy(field="item")))), kind="to_table")


def _merged(random_: random.Random) -> Program:
    kind = random_.choice(("count", "sum", "min", "max"))
    made = replace(_aggregate(random_, kind, random_.choice((None, KeyBy(field="item")))), topics=("both",))
    return made if kind == "count" else replace(made, field="id", format="long")


def _windowed(random_: random.Random) -> Program:
    type_ = random_.choice(("window", "window", "sliding-window", "session"))
    size, grace = random_.choice((1000, 5000)), random_.choice((0, 500, 5000))
    advance = random_.choice((None, size // 5)) if type_ == "window" else None
    least = size * (2 if type_ == "sliding-window" else 1) + grace
    emit = "on-close" if random_.random() < 0.15 else None
    window = Window(type_, size, grace, advance, least * random_.choice((1, 1, 4)), emit=emit)
    kind = random_.choice(("count", "count", "sum", "concat", "last"))
    key_by = KeyBy(field="item") if random_.random() < 0.25 else None
    return replace(_aggregate(random_, kind, key_by), where=None, window=window)


_KINDS = (_plain_aggregate, _plain_aggregate, _by_new_key, _by_new_key, _windowed, _windowed, _table, _to_table, _merged)


def _records(random_: random.Random, program: Program, start: int, partitions: int, amount: Amount) -> tuple[Record, ...]:
    """Return an input: times go on and fall back; some keys and values are null; a key is always in the same partition."""
    made, moment = [], start
    for at in range(amount.records):
        moment += random_.choice((0, 1, 100, 700, 1500)) // amount.hurry
        late = random_.choice(amount.late)
        number = None if random_.random() < 0.03 else random_.randrange(amount.keys)
        partition = (at if number is None else number) % partitions
        headers: Headers = ()
        if program.timestamp and random_.random() < 0.7:
            headers = (("ts", b"%d" % (-1 if random_.random() < 0.05 else moment - random_.choice((0, 300, 4000)))),)
        made.append(Record(_key(program, number), _value(random_, program, at, amount.items), moment - late, headers, partition))
    return tuple(made)


def _key(program: Program, number: int | None) -> bytes | None:
    if number is None:
        return None
    return f"k{number}".encode() if program.key == "string" else struct.pack(">q", number - 3)


def _value(random_: random.Random, program: Program, at: int, items: tuple[str, ...]) -> bytes | None:
    if random_.random() < 0.06 and not program.window:
        return None
    if program.value == "long":
        return struct.pack(">q", random_.randrange(-5, 10**12))
    if program.value == "string":
        if program.key_by:
            return random_.choice(items).encode()
        return b"" if program.kind == "concat_or_delete" and random_.random() < 0.1 else f"{at},".encode()
    price = random_.choice((-2.5, 0.25, 1.5, 2000.0, 0.1, 3))
    value: dict[str, Any] = {"id": random_.randrange(-5, 10**12), "item": random_.choice(items), "price": price}
    if random_.random() < 0.04 and not program.window:
        value["price"] = None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
