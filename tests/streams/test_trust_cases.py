"""State files that leave out, or cannot say, what an application does: kops must not be certain, and destroys nothing that is right.

Each case is a real application, run twice in one JVM with all the others.
"""

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Outcome
from support.programs import Program, Record, Window
from support.skipped import LONG
from support.streams import compacted_view
from support.streams_apps import Cluster, run_all_to_the_end
from support.tables import TableProgram
from support.verified import checks, summaries

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

DAY = 86_400_000
START = int(time.time() * 1000) - 3_600_000
"""Recent: the broker deletes what is older than the retention of a changelog of windows."""
CACHED = (("statestore.cache.max.bytes", str(10 << 20)),)
COUNT = Program("count", "long", value="string")
KEYS = 20


def counted(first: int = 0) -> list[Record]:
    """A record for each key."""
    return [Record(b"k%d" % number, b"x", START + first + number) for number in range(KEYS)]


def at(milliseconds: int, key: bytes = b"k", value: bytes = b"x") -> Record:
    return Record(key, value, START + milliseconds)


Said = dict[str, Any]
"""A state file."""


def without(*path: str) -> Callable[[Said], None]:
    """Return what takes a field from the only store."""

    def change(said: Said) -> None:
        (place,) = said["stores"].values()
        for name in path[:-1]:
            place = place[name]
        del place[path[-1]]

    return change


def last_in_place_of_to_table(said: Said) -> None:
    (store,) = said["stores"].values()
    del store["to_table"]
    store["aggregate"] = {"last": store.pop("value"), "as": store.pop("as")}


def short_grace(said: Said) -> None:
    (store,) = said["stores"].values()
    store["window"] |= {"grace": "0ms", "retention": "1m"}


@dataclass(frozen=True)
class Case:
    """An application that the state file describes wrongly, or whose history it cannot know.

    :param between: what kops is asked to do between the runs, which deletes the local state; the program's names stand in braces
    :param moved: the second run reads another topic
    :param wrong: what a careful user would have written in place of the right state file
    :param code: with which the comparison ends: its keys differ, or what they should be is not known
    :param reason: what one of the findings has
    """

    program: Program
    first: tuple[Record, ...]
    second: tuple[Record, ...] = ()
    between: tuple[str, ...] = ()
    moved: bool = False
    partitions: int = 1
    wrong: Callable[[Said], None] = lambda said: None
    code: int = 1
    reason: str = "surviving keys differ"


def _windows(size: int, **more: Any) -> Program:
    return replace(COUNT, window=Window("window", size, **more))


def _by_kops(*command: str, reason: str = "carried over", **more: Any) -> Case:
    """Return a count that kops moves between its runs."""
    runs = (tuple(counted()), tuple(counted(KEYS)), (*command, "--confirm", "{application}"))
    return Case(COUNT, *runs, code=7, reason=reason, **more)


CASES = {
    "reset to an offset": _by_kops(
        "streams", "reset", "{application}", "--input-topic", "{topic}", "--to", "5", reason="kops moved the application"
    ),
    "grown": _by_kops("state", "repartition", "{file}", "--partitions", "4", "--grow-inputs", partitions=2),
    "carried to another topic": _by_kops(
        "state", "repartition", "{file}", "--partitions", "2", "--input", "{topic}={topic}-new", moved=True
    ),
    "keys in JSON": Case(
        replace(COUNT, key="json"),
        (at(1, b'{"id": 1}'), at(2, b'{"id":1}'), at(3, b'{"id": 2}')),
        code=7,
    ),
    "time of the payload": Case(
        replace(_windows(10_000, retention=DAY), value="json", schema="ts bigint", timestamp="value.ts"),
        tuple(at(number, b"k", b'{"ts":%d}' % (START - 90_000 + 10_000 * number)) for number in range(5)),
        wrong=without("from", "timestamp"),
        code=7,
    ),
    "toTable()": Case(
        Program("to_table", "string", value="string"),
        (at(2, b"m", b"y"), at(1, b"m", b"z"), at(3, b"k", b"a"), Record(b"k", None, START + 4), at(5, b"l", b"b"), at(9, b"l", b"c")),
        wrong=last_in_place_of_to_table,
    ),
    "grace of a day": Case(
        _windows(60_000, grace=DAY),
        tuple(at(60_000 * number - 3_000_000) for number in range(100)),
        wrong=short_grace,
        code=7,
        reason="window.retention",
    ),
    "a session after a restart": Case(
        replace(COUNT, window=Window("session", 10_000, retention=DAY)),
        (at(100_000),),
        (at(5_000),),
        code=7,
        reason="records came late",
    ),
}

FURTHER = ("grown", "carried to another topic", "time of the payload", "toTable()", "grace of a day", "a session after a restart")
"""Long variants: kops moved another one as well, test_trust_evidence.py has windows after a restart, and another thing that a file does not
say stays."""
RUN = {name: case for name, case in CASES.items() if os.environ.get(LONG) or name not in FURTHER}


@dataclass
class App:
    """An application with its state file."""

    cluster: Cluster
    case: Case
    program: Program
    folder: Path
    before: dict[bytes, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        said = self.program.state_file()
        self.case.wrong(said)
        file = self.folder / "state.yaml"
        file.write_text(json.dumps(said), encoding="utf-8")
        return str(file)

    def view(self) -> dict[bytes, Any]:
        return compacted_view(self.cluster.read(self.program.changelog))


@dataclass
class Tables:
    """A count of two joined and cached tables, by region."""

    program: TableProgram
    folder: Path
    file: str


@dataclass
class Scene:
    apps: dict[str, App]
    tables: Tables
    cluster: Cluster
    run_kops: Any

    def kops(self, verb: str, file: str, *options: str) -> Outcome:
        return self.run_kops("state", verb, file, "-B", self.cluster.servers, *options)


JSON = {"format": "json", "schema": "region string, age int"}


def joined(application: str, folder: Path) -> Tables:
    topics = {name: f"{application}-in-{name}" for name in ("users", "ages")}
    program = TableProgram(
        (
            *({"name": name, "topic": topic, "key": "string", "value": "json"} for name, topic in topics.items()),
            {"name": "people", "join": {"left": "users", "right": "ages", "kind": "inner", "as": "json"}},
            {
                "name": "regions",
                "group": {"table": "people", "field": "region", "as": "string"},
                "aggregate": {"kind": "count", "as": "long"},
            },
        ),
        {
            **{name: {"from": {"topic": topic, "key": "string", "value": JSON}} for name, topic in topics.items()},
            "people": {
                "from": {"table": "users"},
                "join": {"table": "ages", "value": "named_struct('region', left.region, 'age', right.age)", "as": JSON},
            },
            "regions": {"from": {"table": "people"}, "key_by": "value.region", "aggregate": {"count": True}},
        },
        application=application,
        config=CACHED,
    )
    file = folder / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    return Tables(program, folder, str(file))


@pytest.fixture(scope="module")
def scene(cluster, tmp_path_factory, run_kops_alone):
    prefix = f"cases-{uuid.uuid4().hex[:8]}"
    apps = {}
    for number, (name, case) in enumerate(RUN.items()):
        program = replace(case.program.named(f"{prefix}-{number}"), output=None)
        apps[name] = App(cluster, case, program, tmp_path_factory.mktemp("app"))
    tables = joined(f"{prefix}-tables-app", tmp_path_factory.mktemp("tables"))
    topics = {app.program.topic: app.case.partitions for app in apps.values()}
    topics |= {f"{app.program.topic}-new": 2 for app in apps.values() if app.case.moved}
    cluster.create_all(topics | {f"{tables.program.application}-in-{name}": 1 for name in ("users", "ages")})

    def run(work: dict[str, tuple[Record, ...]], people: dict[str, list[Record]]) -> None:
        cluster.produce_all({apps[name].program.topic: records for name, records in work.items()})
        cluster.produce_all({f"{tables.program.application}-in-{name}": records for name, records in people.items()})
        runs = [(apps[name].program, apps[name].folder) for name in work]
        run_all_to_the_end(cluster.servers, [*runs, (tables.program, tables.folder)])

    # Both sides of a row arrive between two flushes of the caches, and later both change between two flushes.
    run({name: case.first for name, case in RUN.items()}, {"users": [person(1, b"EU")], "ages": [aged(2, 20)]})
    for name, case in RUN.items():
        app = apps[name]
        if case.between:
            names = {"application": app.program.application, "topic": app.program.topic, "file": app.file}
            run_kops_alone(*(word.format(**names) for word in case.between), "--yes", "-B", cluster.servers).ok()
            shutil.rmtree(app.folder / "state")
        if case.moved:
            app.program = replace(app.program, topic=f"{app.program.topic}-new")
    again = {name: case.second for name, case in RUN.items() if case.second}
    run(again, {"users": [person(3, b"US")], "ages": [aged(4, 30)]})
    for app in apps.values():
        app.before = app.view()
    yield Scene(apps, tables, cluster, run_kops_alone)
    cluster.delete_all(cluster.topics(prefix))


def person(time: int, region: bytes) -> Record:
    return at(time, b"eve", b'{"region":"%s"}' % region)


def aged(time: int, years: int) -> Record:
    return at(time, b"eve", b'{"age":%d}' % years)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long if name in FURTHER else ()) for name in CASES])
def test_what_a_file_does_not_say_is_never_certain(scene, name):
    app = scene.apps[name]
    found = scene.kops("verify", app.file, "-o", "json")
    (store,) = found.json
    assert (found.code, store["verdict"]) == (app.case.code, "doubtful"), store
    assert app.case.reason in summaries(store)
    refused = scene.kops("rebuild", app.file, "--yes")
    assert refused.code == 5, refused
    assert app.view() == app.before
    scene.cluster.empty(app.program.changelog)
    refused = scene.kops("rebuild", app.file, "--dry-run")
    assert (refused.code, "is doubtful" in refused.err) == (5, True), refused


def test_groups_of_a_join_of_cached_tables_are_not_claimed(scene):
    """What Kafka Streams adds and removes depends on when its caches were flushed."""
    found = {row["store"]: checks(row) for row in scene.kops("verify", scene.tables.file, "-o", "json").json}
    assert found["regions"]["unknown_changes"] == "warning"
    assert found["people"]["cached_join"] == "note"
