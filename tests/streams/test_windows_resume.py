"""An application of windows and sessions that lost its state continues after a rebuild as if nothing had happened.

Three applications process the same input, late records among it: one is never touched; the two others lose all changelogs half way. One of
them, which is exactly-once, loses its local state too; the other gets that of an earlier time back. Both are rebuilt, and all continue.
"""

import os
import random
import shutil
import struct
import uuid
from dataclasses import dataclass, replace

import pytest

from support import twins
from support.programs import KeyBy, Program, Record, Several, Window
from support.skipped import LONG
from support.streams import Entry, compacted_view
from support.streams_cases import START
from support.twins import PARTITIONS, Twin
from support.verified import checks

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

COUNT = 480
STEP = 100
DELAYS = [1, 99, 100, 101, 200, 201, 250, 350, 351, 500, 801, 1300, 1301, 5000]
CONFIG = (
    # The times of these records lie years back: the broker would delete their changelogs.
    ("windowstore.changelog.additional.retention.ms", str(10**12)),
    # Closed windows are sent with the next record, not when a second has passed by the clock.
    ("__emit.interval.ms.kstreams.windowed.aggregation__", "0"),
)
MINUTES = Program("count", "long", value="string", store="minutes", window=Window("window", 1000, grace=200, retention=20_000))
HOPS = Program("concat", "string", value="string", store="hops", window=Window("window", 500, advance=200, grace=300))
VISITS = Program("concat", "string", value="string", store="visits", window=Window("session", 250, grace=100, retention=8000))
RECENT = Program("count", "long", value="string", store="recent", window=Window("sliding-window", 300, grace=500))
FINAL = Program("count", "long", value="string", store="final", window=Window("window", 400, grace=100, suppress="closed"))
CLOSING = Program("count", "long", value="string", store="closing", window=Window("window", 400, grace=100, emit="on-close"))
GUARANTEES = {"untouched": "at_least_once", "wiped": "exactly_once_v2", "stale": "at_least_once"}
BROKEN = ("wiped", "stale") if os.environ.get(LONG) else ("wiped",)
"""A stale local state is a long variant: test_resume.py has one, and which it is makes no difference to kops."""
LOCAL_STATES = ["wiped", pytest.param("stale", marks=pytest.mark.long)]
# Through a repartition topic, where no order of its partitions makes a record late.
BY_VALUE = Program(
    "count", "long", value="string", store="by-value", window=Window("window", 1000, grace=10**9), key_by=KeyBy(repartition="by-value")
)
PROGRAMS = (MINUTES, VISITS, FINAL, CLOSING, BY_VALUE, *((HOPS, RECENT) if os.environ.get(LONG) else ()))
"""Hopping and sliding windows are long variants: their stores have the form of the tumbling ones, and test_windows.py computes them."""
SHOWN = (MINUTES, VISITS, BY_VALUE)
"""Those whose differences are checked: one of each form of keys."""


def records() -> list[Record]:
    """Return records of every partition in turn: time goes on, with stragglers of all delays, but none first after a stop."""
    random_ = random.Random("windows")
    made = []
    for at in range(COUNT):
        starts = at % (COUNT // 4) < PARTITIONS
        back = 0 if starts or random_.random() < 0.5 else random_.choice(DELAYS)
        key = f"k{random_.randrange(3)}-{at % PARTITIONS}".encode()
        made.append(Record(key, f"{at}é,".encode(), START + 10_000 + at * STEP - back, (), at % PARTITIONS))
    return made


@dataclass
class Application(Twin):
    """One of the three; its program is several."""

    def views(self) -> dict[str, dict[bytes, Entry]]:
        return {program.store: live(program, compacted_view(self.cluster.read(program.changelog))) for program in self.program.programs}

    def outputs(self) -> dict[str, dict]:
        return {program.store: replace_program(self, program).output() for program in self.program.programs}


def replace_program(twin: Twin, program: Program) -> Twin:
    return Twin(twin.cluster, program, twin.folder, twin.guarantee)


def live(program: Program, view: dict[bytes, Entry]) -> dict[bytes, Entry]:
    """Leave out what the retention has expired; nothing says when a changelog loses it."""
    window = program.window
    session = window.type == "session"
    retention = window.kept

    def time(key: bytes) -> int:
        return struct.unpack_from(">q", key, len(key) - (16 if session else 12))[0]

    newest: dict[int, int] = {}
    for key, entry in view.items():
        newest[entry.partition] = max(newest.get(entry.partition, 0), time(key))
    return {key: entry for key, entry in view.items() if time(key) > newest[entry.partition] - retention}


def make(cluster, prefix: str, who: str, folder, guarantee: str) -> Application:
    name = f"{prefix}-{who}"
    programs = tuple(
        replace(program, application=f"{name}-app", topic=f"{name}-in", output=f"{name}-out-{program.store}") for program in PROGRAMS
    )
    several = Several(programs, (("processing.guarantee", guarantee), *CONFIG))
    cluster.create_all({several.topic: PARTITIONS, **{program.output: PARTITIONS for program in programs}})
    return Application(cluster, several, folder, guarantee)


@dataclass
class Story:
    """The applications at the end, their views in the middle, and what kops said of it."""

    applications: dict[str, Application]
    in_the_middle: dict[str, dict[str, dict[bytes, Entry]]]
    verified: list[dict]
    differences: list[dict]

    @property
    def untouched(self) -> Application:
        return self.applications["untouched"]


@pytest.fixture(scope="module")
def story(cluster, run_kops_alone, tmp_path_factory):
    prefix, made = f"windows-{uuid.uuid4().hex[:8]}", records()
    applications = {who: make(cluster, prefix, who, tmp_path_factory.mktemp(who), GUARANTEES[who]) for who in ("untouched", *BROKEN)}
    everyone, broken = list(applications.values()), [applications[who] for who in BROKEN]
    twins.process(everyone, made[: COUNT // 4])
    earlier = twins.keep(applications["stale"].state) if "stale" in BROKEN else None
    twins.process(everyone, made[COUNT // 4 : COUNT // 2])
    untouched = applications["untouched"]
    verified = run_kops_alone("state", "verify", untouched.state_file, "-B", cluster.servers, "-o", "json").ok().json
    for one in broken:
        for program in one.program.programs:
            cluster.empty(program.changelog)
    shutil.rmtree(applications["wiped"].state)
    if earlier:
        twins.put_back(earlier, applications["stale"].state)
    some = [option for program in SHOWN for option in ("--store", program.store)]
    differences = run_kops_alone("state", "diff", broken[-1].state_file, *some, "-B", cluster.servers, "-o", "json", "--limit", "5").json
    for one in broken:
        run_kops_alone("state", "rebuild", one.state_file, "-B", cluster.servers, "--accept-doubtful", "--yes").ok()
    in_the_middle = {who: one.views() for who, one in applications.items()}
    twins.process(everyone, made[COUNT // 2 :])
    yield Story(applications, in_the_middle, verified, differences)
    cluster.delete_all(cluster.topics(prefix))


def test_what_the_untouched_application_wrote_is_what_kops_computes(story):
    assert {row["store"]: row["verdict"] for row in story.verified} == {program.store: "proven" for program in PROGRAMS}
    assert all((row["late_records"] > 0) == (row["store"] != BY_VALUE.store) for row in story.verified)
    assert all(row["boundary_records"] == 0 for row in story.verified)
    assert sum(row["expired_windows"] for row in story.verified) > 0


def test_differences_show_windows_as_times(story):
    rows = {row["store"]: row for row in story.differences}
    assert set(rows) == {program.store for program in SHOWN}
    for row in rows.values():
        assert row["key"].startswith("k") or row["store"] == BY_VALUE.store
        assert row["window_start"] <= row["window_end"]
        assert row["window_start"].startswith("2023-11-14T22:13:")


@pytest.mark.parametrize("local_state", LOCAL_STATES)
def test_the_stores_are_equal_in_the_middle_and_at_the_end(story, local_state):
    assert story.in_the_middle[local_state] == story.in_the_middle["untouched"]
    assert story.applications[local_state].views() == story.untouched.views()
    assert all(story.in_the_middle["untouched"].values())


@pytest.mark.parametrize("local_state", LOCAL_STATES)
def test_every_output_was_sent_once_and_is_equal(story, local_state):
    assert story.applications[local_state].outputs() == story.untouched.outputs()


@pytest.mark.parametrize("local_state", LOCAL_STATES)
def test_the_committed_offsets_are_equal(story, local_state):
    assert story.applications[local_state].committed() == story.untouched.committed()
    assert sum(story.untouched.committed().values()) == COUNT


def test_a_buffer_of_suppress_that_was_lost_is_said_and_refused(story, cluster, run_kops):
    wiped = story.applications["wiped"]
    cluster.empty(f"{wiped.program.application}-closed-store-changelog")
    common = (wiped.state_file, "-B", cluster.servers, "--store", FINAL.store)
    (row,) = run_kops("state", "verify", *common, "-o", "json").json
    assert (row["verdict"], row["proven"]) == ("doubtful", row["keys"])
    assert checks(row)["lost_buffer"] == "warning"
    refused = run_kops("state", "rebuild", *common, "--yes")
    assert refused.code == 5
    assert "suppress()" in refused.err
