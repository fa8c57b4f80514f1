"""The oracle's programs as applications on a broker: all of a kind in one, run, captured, broken, and rebuilt by their own program."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from support import streams_cases, table_programs
from support.generated_stores import renamed
from support.generated_truth import Claim, Held, contradicts
from support.own_apps import FIRST_MS
from support.programs import Program, Record, Several
from support.streams import compacted_view, java_command
from support.streams_apps import Cluster, run_together, runner_arguments
from support.windows_cases import SETUPS
from support.windows_cases import inputs as window_inputs

PARTITIONS = 3
WINDOW_CASES = 12
"""How many inputs of hypothesis follow one another in each partition."""
TABLE_CASES = 40
HISTORY_MS = 5000
"""That versioned tables keep."""
JOINED = ("join-inner", "join-left", "join-outer", "foreign-key", "grace-join")
TYPES = (
    *("plain", "count", "table", "versioned", "tumbling", "hopping", "sliding", "session"),
    *("suppress", "suppress-session", "suppress-table", *JOINED, "grouped-table", "repartition"),
)
"""The programs of ``StoreTypes.java``, and those of them that read two topics."""
LOST, ONE_PARTITION, LOST_KEYS, WRONG = WAYS = range(4)
"""What becomes of a changelog: all of it is lost, or what is in one partition, or some keys; or some keys are wrong, and one unknown."""


@dataclass(frozen=True)
class Oracle:
    """An application of ``Topologies.java``.

    :param records: of each topic, each with its partition
    """

    application: str
    spec: Mapping[str, Any]
    records: Mapping[str, Sequence[Record]]
    partitions: int = PARTITIONS

    def as_json(self) -> Mapping[str, Any]:
        """Return what ``Topologies.java`` reads; the group is left at once in older versions too."""
        return {**self.spec, "config": {**self.spec["config"], "internal.leave.group.on.close": "true"}}

    def run(self, cluster: Cluster, folder: Path, version: str) -> None:
        """Run it over four fifths of each topic, and write the rest, which it has not processed then."""
        read = {topic: len(records) * 4 // 5 for topic, records in self.records.items()}
        cluster.create_all(dict.fromkeys(self.records, self.partitions))
        cluster.produce_all({topic: records[: read[topic]] for topic, records in self.records.items()})
        run_together([self.arguments(cluster, folder)], version)
        cluster.produce_all({topic: records[read[topic] :] for topic, records in self.records.items()})

    def arguments(self, cluster: Cluster, folder: Path) -> list[str]:
        return runner_arguments(cluster.servers, self, folder)

    def command(self, cluster: Cluster, folder: Path, version: str) -> list[str]:
        """Return the command that starts it."""
        return [*java_command("StreamsRunner", version), *self.arguments(cluster, folder)]


def of_streams(application: str, programs: Sequence[Program], records: Mapping[str, Sequence[Record]]) -> Oracle:
    return Oracle(application, Several(tuple(programs)).as_json(), records)


def by_key(application: str) -> Oracle:
    """Every aggregate, and every format, by the record's own key and by another one."""
    return _cases(application, timed=False)


def by_payload_time(application: str) -> Oracle:
    """Those whose records have the time that a header says."""
    return _cases(application, timed=True)


def _cases(application: str, *, timed: bool) -> Oracle:
    programs, records = [], {}
    for case in (*streams_cases.own_key_cases(), *streams_cases.new_key_cases()):
        if (case.program.timestamp is not None) == timed:
            program = replace(case.program, application=application, topic=f"{application}-{case.program.topic}")
            programs.append(program)
            records[program.topic] = streams_cases.records(program, case.name, partitions=PARTITIONS)
    return of_streams(application, programs, records)


def by_window(application: str) -> Oracle:
    """Aggregates by window and session, where records are late by a little more or less than counts; of every other one none is."""
    programs, records = [], {}
    for at_setup, chosen in enumerate(SETUPS):
        window = chosen.window
        window = window if window.alignment is None else replace(window, alignment=FIRST_MS + window.alignment)
        topic = f"{application}-{chosen.name}"
        programs.append(replace(chosen.program, application=application, topic=topic, store=chosen.name, window=window))
        found: list[Record] = []
        latest = [FIRST_MS] * PARTITIONS
        for number, case in enumerate(window_inputs(chosen, WINDOW_CASES * PARTITIONS)):
            at = number % PARTITIONS
            start = latest[at] + window.size - min(record.timestamp for record in case)
            for record in case:
                found.append(replace(record, timestamp=start + record.timestamp, partition=at, key=b"%d" % at + (record.key or b"")))
            latest[at] = max(record.timestamp for record in found if record.partition == at)
        records[topic] = sorted(found, key=lambda record: record.timestamp) if at_setup % 2 else found
    return of_streams(application, programs, records)


def of_tables(application: str) -> Oracle:
    """Tables, joins of them by key and by foreign key, groups, filters, and tables with versions."""
    tables: list[dict[str, Any]] = []
    records: dict[str, list[Record]] = {}
    known = [program for program, _stores, _mark in table_programs.BY_TIME.values()]
    for number, program in enumerate([*known, *map(table_programs.foreign, ("inner", "left"))]):
        names = {one["name"]: f"{one['name']}{number}" for one in program.tables}
        topics = {one["topic"]: f"{application}-{one['topic']}{number}" for one in program.tables if "topic" in one}
        tables += [renamed(one, names, topics) for one in program.tables]
        for moment, case in enumerate(table_programs.inputs(program, TABLE_CASES, by_time=False)):
            for topic, several in case.topics.items():
                records.setdefault(topics[topic], []).extend(_of_case(one, moment) for one in several)
    return Oracle(application, {"application": application, "tables": tables, "output": None, "config": {}}, records)


def _of_case(record: Record, number: int) -> Record:
    """Return a record under a key of its own case, and after those of earlier ones."""
    mark = b"%d:" % number
    value = record.value and record.value.replace(b'"f":"', b'"f":"' + mark)
    time = FIRST_MS + number * 20_000 + 1000 * (record.timestamp - 1000)
    return replace(record, key=mark + (record.key or b""), value=value, timestamp=time, headers=())


def of_types(application: str) -> Oracle:
    """A program for each type of store."""
    records: dict[str, list[Record]] = {}
    for kind in TYPES:
        for side in ("in", "other") if kind in JOINED else ("in",):
            made = records[f"{application}-{kind}-{side}"] = []
            for at in range(90):
                value = None if at % 17 == 16 else b"%c%d" % (b"abcdefgh"[at * 5 % 8], at % 7)
                late = (0, 0, 0, 1, 9, 30)[at * 7 % 6]
                key = b"%c" % b"abcdefgh"[at * 11 % 8]
                headers = (("trace", b"%d" % at),) if at % 3 else ()
                made.append(Record(key, value, FIRST_MS + 4 * at - late + (side == "other"), headers))
    return Oracle(application, {"application": application, "store_types": TYPES, "config": {}}, records)


ORACLES: Mapping[str, Callable[[str], Oracle]] = {
    "keys": by_key,
    "times": by_payload_time,
    "windows": by_window,
    "tables": of_tables,
    "types": of_types,
}


@dataclass(frozen=True)
class Captured:
    """A store as a capture has it."""

    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    @property
    def changelog(self) -> str:
        return str(self.facts["changelog"])

    @property
    def is_versioned(self) -> bool:
        return bool(self.facts["kind"] == "versioned")

    @property
    def is_grouped(self) -> bool:
        """Whether it is grouped from a table, as those of this name are."""
        return self.name.startswith("g")

    @property
    def holds_what_waits(self) -> bool:
        """Whether it may be empty in the end: that of an outer join, once all have found a partner or been sent without one."""
        return bool(self.facts["kind"] == "list")

    def compared(self, log: Sequence[Record]) -> list[Record]:
        """Return the log of its changelog with timestamps only where these are state: those of a suppression say when it was written."""
        return [replace(record, timestamp=0) for record in log] if self.facts["kind"] == "buffer" else list(log)

    def held(self, log: Sequence[Record]) -> Held:
        """Return what it holds by the log of its changelog; windows that have expired need not be there."""
        view, retention = compacted_view(log), self.facts.get("retention_ms")
        if self.facts["kind"] not in ("window", "timestamped-window", "session") or retention is None:
            return Held(view, frozenset(view))

        def moment(key: bytes) -> int:
            found: int = struct.unpack_from(">q", key, len(key) - (16 if self.facts["kind"] == "session" else 12))[0]
            return found

        newest: dict[int | None, int] = {}
        for record in log:
            newest[record.partition] = max(newest.get(record.partition, 0), moment(record.key or b""))

        def has_expired(key: bytes, partition: int | None) -> bool:
            return moment(key) <= newest.get(partition, 0) - retention

        return Held(view, frozenset(key for key, entry in view.items() if not has_expired(key, entry.partition)), has_expired)


def stores_of(capture: Path) -> list[Captured]:
    """Return the stores of a capture that have a changelog of their own."""
    found = json.loads(capture.read_text(encoding="utf-8"))
    own = {each["name"] for one in found["subtopologies"] for each in one["changelogs"] if not each["is_source_topic"]}
    return [Captured(store) for store in found["stores"] if store["changelog"] in own]


@dataclass(frozen=True)
class Outcome:
    """What came of a rebuild by the program.

    :param verdicts: the word for each store
    :param claims: what that means for it
    :param wrong: what contradicts one
    :param differing: how many keys of a store are not as they were, in value, time or headers
    """

    verdicts: Mapping[str, str]
    claims: Mapping[str, Claim]
    wrong: Sequence[str]
    differing: Mapping[str, int]


def lose_and_rebuild(cluster: Cluster, run_kops: Callable[..., Any], capture: Path, ways: Sequence[int] = WAYS) -> Outcome:
    """Damage the changelogs of a program, each in its way, and let kops rebuild them.

    :param ways: of the stores in turn
    """
    stores = [store for store in stores_of(capture) if not store.is_versioned]
    logs = {store.changelog: cluster.read(store.changelog) for store in stores}
    how = {store.changelog: ways[at % len(ways)] for at, store in enumerate(stores)}
    assert not [store.name for store in stores if not compacted_view(logs[store.changelog]) and not store.holds_what_waits]
    _damage(cluster, logs, how)
    damaged = [word for store in stores if how[store.changelog] in (LOST_KEYS, WRONG) for word in ("--damaged", store.name)]
    chosen = [word for store in stores for word in ("--store", store.name)]
    run_kops(
        "state", "rebuild", "--app", capture, "--yes", "--accept-doubtful", "--wait-empty", "60s", *chosen, *damaged, "-B", cluster.servers
    ).ok()
    plan = run_kops("journal", "show", "last", "-o", "json").json["plan"]
    rebuilt = plan["arguments"]["stores"]
    claims = {name: Claim.of(found) for name, found in rebuilt.items()}
    assert set(claims) == {store.name for store in stores}
    wrong, differing = [], {}
    for store in stores:
        wanted, now = store.held(store.compared(logs[store.changelog])), store.compared(cluster.read(store.changelog))
        found = contradicts(claims[store.name], wanted, now, "", grouped=store.is_grouped)
        wrong += [f"{store.name}, {rebuilt[store.name]['verdict']}, {claims[store.name]}: {what}" for what in found[:3]]
        differing[store.name] = len(contradicts(Claim(), wanted, now, ""))
    verdicts = {name: str(found["verdict"]) for name, found in rebuilt.items()}
    return Outcome(verdicts, claims, wrong, {name: count for name, count in differing.items() if count})


def _damage(cluster: Cluster, logs: Mapping[str, Sequence[Record]], how: Mapping[str, int]) -> None:
    """Damage changelogs.

    :param logs: what they hold
    :param how: of each, one of the four ways
    """
    partitions = cluster.topics()
    cluster.lose({topic: range(partitions[topic]) if way == LOST else [1] for topic, way in how.items() if way in (LOST, ONE_PARTITION)})
    writes: dict[str, list[Record]] = {}
    for topic, way in how.items():
        view = sorted(compacted_view(logs[topic]).items())
        if way == LOST_KEYS:
            writes[topic] = [Record(key, None, entry.timestamp, (), entry.partition) for key, entry in view[::3]]
        elif way == WRONG:
            wrong = [Record(key, entry.value + b"0", entry.timestamp, entry.headers, entry.partition) for key, entry in view[::4]]
            late = [Record(key, entry.value, entry.timestamp + 1, entry.headers, entry.partition) for key, entry in view[1::4]]
            gone = [Record(key, None, entry.timestamp, (), entry.partition) for key, entry in view[2::4]]
            writes[topic] = [*wrong, *late, *gone]
    cluster.produce_all(writes)
