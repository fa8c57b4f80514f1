"""After a rebuild an application continues as if nothing had happened.

Three applications process the same input: one is never touched; the two others lose their changelog half way, and one of them also its
local state, while the other gets back the local state of an earlier time. Both are rebuilt, and all continue.
"""

import shutil
import uuid
from dataclasses import dataclass

import pytest

from support import twins
from support.programs import KeyBy, Program, Record
from support.streams import Entry
from support.streams_cases import START, TEXTS
from support.twins import PARTITIONS, Twin

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

SUM = Program("sum", "double", field="price", key_by=KeyBy(field="item"), schema="item string, price double")
CONCAT_OR_DELETE = Program("concat_or_delete", "string", value="string")
COUNT = 400


def prices() -> list[Record]:
    """All records of an item in one partition, so that their order is known after the repartition topic as well."""
    made = []
    for at in range(COUNT):
        item = TEXTS[at * 7 % len(TEXTS)]
        value = f'{{"item":"{item}","price":{at}.25}}'.replace("\u0000", "\\u0000").encode()
        made.append(Record(b"%d" % at, value, START + at * 37 % 1000, (), TEXTS.index(item) % PARTITIONS))
    return made


def words() -> list[Record]:
    """Each key is deleted now and then; one for good between the first quarter and the middle, to come back after it."""
    made = []
    for at in range(COUNT):
        key = TEXTS[at * 7 % len(TEXTS)].encode()
        value = "" if at % 9 == 8 else f"{at}é,"
        made.append(Record(key, value.encode(), START + at * 37 % 1000, (), len(key) % PARTITIONS))
    gone = [(1, "x"), (COUNT // 4 + 1, ""), (COUNT * 3 // 4, "y")]
    for at, value in gone:
        made[at] = Record(b"comes back", value.encode(), START + at, (), 1)
    return made


@dataclass
class Story:
    """The three applications at the end, and their views in the middle."""

    untouched: Twin
    wiped: Twin
    stale: Twin
    in_the_middle: dict[str, dict[bytes, Entry]]


@pytest.fixture(
    scope="module",
    params=[("at_least_once", "sum-by-item"), ("exactly_once_v2", "concat-or-delete")],
    ids="-".join,
)
def story(request, cluster, run_kops_alone, tmp_path_factory):
    guarantee, name = request.param
    program, records = {"sum-by-item": (SUM, prices()), "concat-or-delete": (CONCAT_OR_DELETE, words())}[name]
    prefix = f"resume-{uuid.uuid4().hex[:8]}"
    untouched, wiped, stale = three = [
        twins.make(cluster, program, f"{prefix}-{who}", tmp_path_factory.mktemp(who), guarantee) for who in ("untouched", "wiped", "stale")
    ]
    twins.process(three, records[: COUNT // 4])
    earlier = twins.keep(stale.state)
    twins.process(three, records[COUNT // 4 : COUNT // 2])
    for broken in (wiped, stale):
        cluster.empty(broken.program.changelog)
    shutil.rmtree(wiped.state)
    twins.put_back(earlier, stale.state)
    for broken in (wiped, stale):
        run_kops_alone("state", "rebuild", broken.state_file, "-B", cluster.servers, "--yes").ok()
    in_the_middle = {who: twin.view() for who, twin in zip(("untouched", "wiped", "stale"), three, strict=True)}
    twins.process(three, records[COUNT // 2 :])
    yield Story(untouched, wiped, stale, in_the_middle)
    cluster.delete_all(cluster.topics(prefix))


@pytest.mark.parametrize("local_state", ["wiped", "stale"])
def test_the_store_is_equal_in_the_middle_and_at_the_end(story, local_state):
    assert story.in_the_middle[local_state] == story.in_the_middle["untouched"]
    assert getattr(story, local_state).view() == story.untouched.view()


@pytest.mark.parametrize("local_state", ["wiped", "stale"])
def test_every_output_was_sent_once_and_is_equal(story, local_state):
    assert getattr(story, local_state).output() == story.untouched.output()
    assert sum(map(len, story.untouched.output().values())) == COUNT


@pytest.mark.parametrize("local_state", ["wiped", "stale"])
def test_the_committed_offsets_are_equal(story, local_state):
    assert getattr(story, local_state).committed() == story.untouched.committed()
    assert sum(story.untouched.committed().values()) == COUNT
