"""Stores of Kafka Streams programs that one stream fills, described by data.

One :class:`Program` gives both sides of a proof: the JSON from which ``oracle/Topologies.java`` builds the Kafka Streams program,
and the state file from which kops computes the same store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from kops.gateways.machine.jars import KAFKA_VERSION

REDUCERS = {"concat": "support.reducers:concat", "concat_or_delete": "support.reducers:ConcatOrDelete"}
"""The aggregates that are reducers in a state file, and Java in ``Topologies.java``."""

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Record:
    """A record of a topic.

    :param timestamp: milliseconds since the epoch
    :param partition: ``None`` where it is not known, or the default partitioner's choice
    :param offset: ``None`` where it is not known
    """

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
    partition: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Where:
    """A condition on a field of the value, or on the value itself: ``not_null``, ``eq``, ``ne``, ``gt``, ``ge``, ``lt``, ``le``."""

    op: str
    value: float | str | None = None
    field: str | None = None

    def sql(self) -> str:
        """Return it as Spark SQL."""
        column = _column(self.field)
        if self.op == "not_null":
            return f"{column} is not null"
        sign = {"eq": "=", "ne": "<>", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}[self.op]
        return f"{column} {sign} {self.value!r}"

    def as_json(self) -> dict[str, Any]:
        return {"field": self.field, "op": self.op, "value": self.value}


@dataclass(frozen=True)
class KeyBy:
    """A new key, from a field of the value or the value itself, through a repartition topic of this name.

    :param partitioner: one of ``Topologies.java``, where it is not the default one
    """

    format: str = "string"
    field: str | None = None
    repartition: str = "totals"
    partitions: int | None = None
    partitioner: str | None = None


@dataclass(frozen=True)
class Window:
    """Windows; times in milliseconds.

    :param type: as a state file names it
    :param size: of sliding windows the difference, of sessions the gap
    :param advance: of tumbling and hopping windows; ``None``: the size
    :param retention: ``None``: what Kafka Streams takes by itself
    :param suppress: name of a suppression of results until windows close
    :param alignment: how far after multiples of the advance windows start, which only windows of a program's own do
    :param rocksdb: keep them in RocksDB where a test's driver would keep them in memory
    """

    type: str
    size: int
    grace: int = 0
    advance: int | None = None
    retention: int | None = None
    rocksdb: bool = False
    emit: str | None = None
    suppress: str | None = None
    alignment: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what ``WindowedStores.java`` reads."""
        return {**asdict(self), "advance": self.advance or self.size}

    @property
    def kept(self) -> int:
        """Return how long Kafka Streams keeps them, in milliseconds."""
        return self.retention or self.grace + self.size * (2 if self.type == "sliding-window" else 1)

    def state_file(self) -> dict[str, str]:
        """Return the field ``window`` of a state file."""
        size = {"window": "size", "sliding-window": "difference", "session": "gap"}[self.type]
        found = {size: self.size, "grace": self.grace, "advance": self.advance, "alignment": self.alignment, "retention": self.kept}
        return {name: f"{value}ms" for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Program:
    """One store from one topic.

    :param schema: Spark's schema of JSON values
    :param kind: see ``Topologies.java``
    :param field: the field that is aggregated; ``None``: the whole value
    :param format: of the store's values
    :param config: settings of Kafka Streams
    :param version: of Kafka Streams, as the state file has it
    :param merged_with: a further topic of the same sub-topology, which the store does not see
    :param timestamp: Spark SQL of what ``PayloadTime.java`` finds, if the program has that
    :param topics: which are one stream, in place of the one topic
    :param keeps: what the program keeps or reads besides its records, for ``Keeping.java``; a state file cannot say it
    """

    kind: str
    format: str
    field: str | None = None
    key: str = "string"
    value: str = "json"
    schema: str = "id int, item string, price double"
    where: Where | None = None
    key_by: KeyBy | None = None
    application: str = "app"
    topic: str = "in"
    output: str | None = None
    store: str = "totals"
    window: Window | None = None
    config: tuple[tuple[str, str], ...] = ()
    version: str = KAFKA_VERSION[:3]
    merged_with: str | None = None
    timestamp: str | None = None
    topics: tuple[str, ...] = ()
    keeps: tuple[tuple[str, str], ...] = ()

    @property
    def changelog(self) -> str:
        """Return the name of its changelog topic."""
        return f"{self.application}-{self.store}-changelog"

    @property
    def repartition(self) -> str | None:
        """Return the name of its repartition topic, if it has one."""
        return f"{self.application}-{self.key_by.repartition}-repartition" if self.key_by else None

    def named(self, prefix: str) -> Program:
        """Return the same program with names of its own for the application and its topics."""
        return replace(self, application=f"{prefix}-app", topic=f"{prefix}-in", output=f"{prefix}-out")

    def as_json(self) -> dict[str, Any]:
        """Return what ``Topologies.java`` reads."""
        spec: dict[str, Any] = {
            "application": self.application,
            "store": self.store,
            "output": self.output,
            "from": {"topic": self.topic, "key": self.key, "value": self.value},
            "aggregate": {"kind": self.kind, "field": self.field, "as": self.format},
            "config": dict(self.config),
            "merged_with": self.merged_with,
            "payload_time": self.timestamp is not None,
        }
        if self.topics:
            spec["from"]["topics"] = list(self.topics)
        if self.where:
            spec["where"] = self.where.as_json()
        if self.keeps:
            spec["keeps"] = dict(self.keeps)
        if self.window:
            spec["window"] = self.window.as_json()
        if self.key_by:
            by = self.key_by
            spec["key_by"] = {"field": by.field, "as": by.format, "repartition": by.repartition, "partitions": by.partitions}
            spec["key_by"]["partitioner"] = by.partitioner
        return spec

    def state_file(self, guarantee: str = "at_least_once") -> dict[str, Any]:
        """Return the state file of this program, before it is written as YAML (of which JSON is a part)."""
        value: Any = {"format": "json", "schema": self.schema} if self.value == "json" and self.schema else self.value
        which = {"topics": list(self.topics)} if self.topics else {"topic": self.topic}
        store: dict[str, Any] = {"type": "key-value", "from": {**which, "key": self.key, "value": value}}
        if self.timestamp:
            store["from"]["timestamp"] = self.timestamp
        if self.window:
            store |= {"type": self.window.type, "window": self.window.state_file()}
            if self.window.emit:
                store["emit"] = self.window.emit
            if self.window.suppress:
                store["suppress"] = f"{self.window.suppress}-store"
        if self.where:
            store["where"] = self.where.sql()
        if self.key_by:
            store |= {"key_by": _column(self.key_by.field), "key_as": self.key_by.format, "repartition": self.repartition}
        if self.kind == "count":
            store["aggregate"] = {"count": True}
        elif self.kind == "to_table":
            store |= {"to_table": True, "value": _column(self.field), "as": self.format}
        elif self.kind in REDUCERS:
            store["aggregate"] = {"reducer": REDUCERS[self.kind], "as": self.format}
        elif self.kind != "table":
            store["aggregate"] = {self.kind: _column(self.field), "as": self.format}
        return {
            "application": self.application,
            "streams": {"version": self.version, "guarantee": guarantee},
            "stores": {self.store: store},
        }


@dataclass(frozen=True)
class Several:
    """Programs of one topic that are one application."""

    programs: tuple[Program, ...]
    config: tuple[tuple[str, str], ...] = ()

    @property
    def application(self) -> str:
        return self.programs[0].application

    @property
    def topic(self) -> str:
        return self.programs[0].topic

    def as_json(self) -> dict[str, Any]:
        """Return what ``Topologies.java`` reads."""
        return {
            "application": self.application,
            "config": dict(self.config),
            "payload_time": any(program.timestamp for program in self.programs),
            "several": [program.as_json() for program in self.programs],
        }

    def state_file(self, guarantee: str = "at_least_once") -> dict[str, Any]:
        """Return the state file of the application."""
        return merged(self.programs, guarantee)


def merged(programs: Iterable[Program], guarantee: str = "at_least_once") -> dict[str, Any]:
    """Return one state file of several programs that are stores of the same application."""
    files = [program.state_file(guarantee) for program in programs]
    assert len({file["application"] for file in files}) == 1
    return {**files[0], "stores": {name: store for file in files for name, store in file["stores"].items()}}


def _column(name: str | None) -> str:
    return f"value.{name}" if name else "value"
