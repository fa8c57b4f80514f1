"""An application that is restored, built beside itself, or moved to another number of partitions continues as its twin does.

Applications process the same input. In the middle one is left alone; of the others one loses its changelog and gets a snapshot back,
one moves from 4 to 12 partitions with its input topic growing, a windowed one moves to another input topic that has 12, and one hands
over to an application of another name. Then all continue.
"""

import shutil
import struct
import uuid
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from support import twins
from support.programs import KeyBy, Program, Record, Window
from support.streams_cases import START
from support.twins import Twin

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

ITEMS = ["laptop", "phone", "ключ", "😀", "a\u0000b", "", *(f"item-{at}" for at in range(30))]
BY_ITEM = Program("sum", "double", field="price", key_by=KeyBy(field="item"), schema="item string, price double")
BY_KEY = Program(
    "count",
    "long",
    value="string",
    window=Window("window", size=100, grace=10_000),
    config=(("windowstore.changelog.additional.retention.ms", str(100 * 365 * 86_400_000)),),
)
"""None of its records comes late in either number of tasks, each of which has a stream time of its own."""
COUNT, HALF = 400, 200
OLD, NEW = 4, 12


def prices(partitions: int = OLD) -> list[Record]:
    """All records of an item in one partition, so that their order is known after the repartition topic as well."""
    made = []
    for at in range(COUNT):
        number = at * 7 % len(ITEMS)
        value = f'{{"item":"{ITEMS[number]}","price":{at}.25}}'.replace("\x00", "\\u0000").encode()
        made.append(Record(b"%d" % at, value, START + at * 37 % 1000, (), number % partitions))
    return made


def words() -> list[Record]:
    """Of each key in the partition of the default partitioner: so the keys can move."""
    return [Record(ITEMS[at * 7 % len(ITEMS)].encode(), f"{at},".encode(), START + at * 37 % 1000) for at in range(COUNT)]


@dataclass
class Story:
    """The applications at the end, and what was seen in the middle."""

    untouched: Twin
    restored: Twin
    grown: Twin
    taken_over: Twin
    words_untouched: Twin
    words_moved: Twin
    answers: dict[str, object] = field(default_factory=dict)


def of_all(twin: Twin) -> dict[bytes, tuple[bytes | None, int]]:
    """Return value and time of each key, wherever it lies."""
    return {key: (entry.value, entry.timestamp) for key, entry in twin.view().items()}


def places(twin: Twin) -> dict[bytes, set[int]]:
    """Return the changelog partitions in which each key was ever written."""
    found = defaultdict(set)
    for record in twin.cluster.read(twin.program.changelog):
        found[record.key].add(record.partition)
    return found


def answers(kops, twin: Twin) -> dict[bytes, object]:
    rows = kops("state", "query", twin.state_file, "--all", "-B", twin.cluster.servers, "-o", "json").ok().json
    return {row["key"].encode(): row["value"] for row in rows}


@pytest.fixture(scope="module")
def story(cluster, run_kops_alone, tmp_path_factory):
    prefix, kops = f"moves-{uuid.uuid4().hex[:8]}", run_kops_alone
    servers = ("-B", cluster.servers)

    def twin(who: str, program: Program = BY_ITEM, guarantee: str = "at_least_once") -> Twin:
        return twins.make(cluster, program, f"{prefix}-{who}", tmp_path_factory.mktemp(who), guarantee, OLD)

    untouched, restored, grown, old = twin("untouched"), twin("restored", guarantee="exactly_once_v2"), twin("grown"), twin("old")
    words_untouched, words_moved = twin("words", BY_KEY), twin("moved", BY_KEY, "exactly_once_v2")
    by_item, by_key = [untouched, restored, grown, old], [words_untouched, words_moved]
    twins.process_each([*((each, prices()[:HALF]) for each in by_item), *((each, words()[:HALF]) for each in by_key)])
    seen: dict[str, object] = {"before": answers(kops, grown), "before, as Kafka Streams has it": of_all(grown)}
    seen |= ask(kops, untouched, servers)

    snapshot = str(tmp_path_factory.mktemp("snapshots") / "restored")
    kops("state", "snapshot", restored.state_file, "--to", snapshot, *servers).ok()
    assert {path.stat().st_mode & 0o777 for path in Path(snapshot).rglob("*")} == {0o600, 0o700}
    cluster.delete(restored.program.changelog)
    shutil.rmtree(restored.state)
    kops("state", "restore", snapshot, "--yes", *servers).ok()

    kops(
        "state", "repartition", grown.state_file, "--partitions", NEW, "--grow-inputs", "--confirm", grown.program.application, *servers
    ).ok()
    shutil.rmtree(grown.state)
    seen["after"] = answers(kops, grown)

    seen["windows"] = kops("state", "query", words_moved.state_file, "laptop", *servers, "-o", "json").ok().json
    seen["windows, as Kafka Streams has them"] = of_all(words_moved)
    there = cluster.create(f"{words_moved.program.topic}-{NEW}", NEW)
    move = ("--partitions", NEW, "--input", f"{words_moved.program.topic}={there}", "--confirm", words_moved.program.application)
    kops("state", "repartition", words_moved.state_file, *move, *servers).ok()
    shutil.rmtree(words_moved.state)
    words_moved.program = replace(words_moved.program, topic=there)

    new = replace(old.program, application=f"{prefix}-new-app")
    kops("state", "rebuild", old.state_file, "--into", new.application, "--yes", *servers).ok()
    seen["old against new"] = kops("state", "diff", old.state_file, "--against", new.application, *servers, "-o", "json")
    taken_over = Twin(cluster, new, Path(tmp_path_factory.mktemp("new")), "at_least_once")

    rest = [*((each, prices()[HALF:]) for each in (untouched, restored, taken_over)), (grown, prices(NEW)[HALF:])]
    twins.process_each([*rest, *((each, words()[HALF:]) for each in by_key)])
    yield Story(untouched, restored, grown, taken_over, words_untouched, words_moved, seen)
    cluster.delete_all(cluster.topics(prefix))


def ask(kops, twin: Twin, servers: tuple[str, ...]) -> dict[str, object]:
    """Ask for one key in every way."""

    def query(*arguments: str) -> object:
        return kops("state", "query", twin.state_file, *arguments, *servers, "-o", "json")

    return {
        "the key": query("laptop"),
        "the key, computed": query("laptop", "--from", "input"),
        "all, computed": query("--all", "--from", "input"),
        "the key at the start": query("laptop", "--at", "0"),
        "no such key": query("no such item"),
        "the whole": of_all(twin),
    }


SAME = [("restored", "untouched"), ("grown", "untouched"), ("taken_over", "untouched"), ("words_moved", "words_untouched")]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_store_is_equal_at_the_end(story, one, other):
    assert of_all(getattr(story, one)) == of_all(getattr(story, other))
    assert {len(found) for found in places(getattr(story, one)).values()} == {1}, "each key in one partition, before and after"


@pytest.mark.parametrize(("one", "other"), SAME)
def test_every_output_was_sent_once_and_is_equal(story, one, other):
    outputs = [getattr(story, name).output() for name in (one, other)]
    assert outputs[0] == outputs[1]
    assert sum(map(len, outputs[0].values())) == COUNT


def test_all_of_the_input_was_processed_once(story):
    for twin in (story.untouched, story.restored, story.grown, story.taken_over):
        assert sum(twin.committed().values()) == COUNT
    assert sum(story.words_moved.committed().values()) == COUNT - HALF


def test_every_key_has_the_answer_it_had_on_the_old_count(story):
    assert story.answers["after"] == story.answers["before"]
    assert len(story.answers["before"]) == len(ITEMS)
    assert set(story.answers["before"]) == set(story.answers["before, as Kafka Streams has it"])


def test_a_key_is_answered_from_the_changelog_and_from_the_input(story):
    whole = story.answers["the whole"]
    value, _ = whole[b"laptop"]
    for name in ("the key", "the key, computed"):
        (row,) = story.answers[name].ok().json
        assert (row["store"], row["key"], row["value"]) == ("totals", "laptop", struct.unpack(">d", value)[0])
        assert row["timestamp"].startswith("2023-11-14T")
    computed = {row["key"].encode(): row["value"] for row in story.answers["all, computed"].ok().json}
    assert computed == {key: struct.unpack(">d", value)[0] for key, (value, _) in whole.items()}
    for name in ("the key at the start", "no such key"):
        assert story.answers[name].code == 1
        assert story.answers[name].json == []


def test_a_windowed_key_shows_its_windows(story):
    held = {key: value for key, (value, _) in story.answers["windows, as Kafka Streams has them"].items() if key[:-12] == b"laptop"}
    starts = {int.from_bytes(key[-12:-4], "big"): struct.unpack(">q", value)[0] for key, value in held.items()}
    shown = {row["window_start"]: (row["window_end"], row["value"]) for row in story.answers["windows"]}
    assert shown == {text(start): (text(start + 100), count) for start, count in starts.items()}
    assert len(shown) > 1


def text(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds // 1000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def test_the_old_and_the_new_application_were_the_same(story):
    assert story.answers["old against new"].ok().json == []
