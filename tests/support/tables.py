"""Tables of tables as real Kafka Streams programs (``TableTopologies.java``), and the records that go into them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kops.gateways.machine.jars import KAFKA_VERSION
from support.programs import Record
from support.streams import Entry, Oracle, compacted_view, encoded


@dataclass(frozen=True)
class TableProgram:
    """A program of ``TableTopologies.java``, and the state file of the same stores.

    :param tables: as ``TableTopologies.java`` reads them
    :param stores: the ``stores`` of the state file
    :param version: of Kafka Streams, as the state file has it
    """

    tables: tuple[dict[str, Any], ...]
    stores: dict[str, Any]
    application: str = "app"
    output: str | None = None
    config: tuple[tuple[str, str], ...] = ()
    version: str = KAFKA_VERSION

    def as_json(self) -> dict[str, Any]:
        """Return what ``Topologies.java`` reads."""
        return {"application": self.application, "tables": list(self.tables), "output": self.output, "config": dict(self.config)}

    def state_file(self, guarantee: str = "at_least_once") -> dict[str, Any]:
        """Return the state file, before it is written as YAML."""
        cache = any(name == "statestore.cache.max.bytes" and value != "0" for name, value in self.config)
        streams = {"version": self.version, "guarantee": guarantee, "cache": cache}
        return {"application": self.application, "streams": streams, "stores": self.stores}

    def changelog(self, store: str) -> str:
        return f"{self.application}-{store}-changelog"


Piped = Sequence[tuple[str, Record]]
"""Topic and record, in the order in which a task processes them."""


def views(oracle: Oracle, program: TableProgram, records: Piped, stores: Iterable[str]) -> dict[str, dict[bytes, Entry]]:
    """Return what the real Kafka Streams holds after these records."""
    written = oracle.ask(program.as_json(), encoded_records(records))
    return {store: compacted_view(written.get(program.changelog(store), ()), partitions=False) for store in stores}


def encoded_records(records: Piped) -> list[dict[str, Any]]:
    """Return records as the oracle reads them."""
    return [{**encoded(record), "topic": topic} for topic, record in records]


def merged_by_time(*topics: Sequence[tuple[str, Record]]) -> list[tuple[str, Record]]:
    """Return the records in the order in which a task takes them when all are there: the topic whose next record is the oldest.

    ``PartitionGroup``; of two that are as old, the first topic.
    """
    left = [list(records) for records in topics]
    merged = []
    while any(left):
        _, at = min((records[0][1].timestamp, at) for at, records in enumerate(left) if records)
        merged.append(left[at].pop(0))
    return merged
