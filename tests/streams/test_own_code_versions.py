"""`kops state rebuild --app --write replace`: versioned stores, of which the application answers for many times as it did before."""

import random
import shutil

import pytest

from kops.gateways.machine.jars import KAFKA_VERSION
from support.captured import built_agent
from support.own_apps import FIRST_MS, App
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

INPUTS = ("facts", "moves", "counted", "questions")
STORES = ("versions", "kept")
HISTORY_MS = 60_000
KEYS = [b"key-%d" % at for at in range(8)]
LATE = (0, 0, 0, 5_000, 30_000, 59_000, 61_000, 90_000)
"""By how much a record, or what is put, may be late; some too late for a store."""


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


def given(name, count=160):
    """Return the records of a topic; values are deletions now and then, and the last of some keys are far older than the history."""
    chosen, made = random.Random(name), []
    for at in range(count):
        now = FIRST_MS + at * 1500
        key = chosen.choice(KEYS if at < count // 3 else KEYS[:-2])
        late = now - chosen.choice(LATE)
        value = None if name == "facts" else b"delete"
        if chosen.random() > 0.15:
            value = b"%c%d" % (b"abcdefgh"[at % 8], at)
        if name == "moves":
            value += b"@%d" % late
        made.append(Record(key, value, late if name == "facts" else now))
    return made


def questions(at_ms):
    times = [
        FIRST_MS + 240_000 - at for at in (0, 1, 1500, 20_000, 45_000, 59_998, 59_999, 60_000, 60_001, 61_500, 61_501, 90_000, 200_000)
    ]
    asked = [*(f"{store}@{time}".encode() for store in STORES for time in times), *(store.encode() for store in STORES)]
    return [Record(key, question, at_ms) for key in KEYS for question in asked]


class Asked:
    """The application, started without local state each time that it is asked."""

    def __init__(self, cluster, made):
        self.cluster, self.made, self.ends = cluster, made, {}

    def answers(self):
        shutil.rmtree(self.made.folder / "state", ignore_errors=True)
        self.cluster.produce(self.made.topic("questions"), questions(FIRST_MS + 240_000))
        self.made.run()
        new = [one for one in self.cluster.read(self.made.topic("out")) if one.offset >= self.ends.get(one.partition, 0)]
        self.ends |= {one.partition: one.offset + 1 for one in new}
        return sorted((one.key, one.value) for one in new)


@pytest.mark.long
@pytest.mark.parametrize("version", [KAFKA_VERSION, "4.1.1", "3.9.1", "3.6.2"])
def test_versioned_stores_come_back(cluster, prefix, run_kops, tmp_path, version):
    made = App(cluster, "versions", prefix, tmp_path / "app", version, main="Versions", inputs=list(INPUTS))
    cluster.create_all({made.topic(name): 2 for name in (*INPUTS, "out")})
    cluster.produce_all({made.topic(name): given(name) for name in INPUTS[:-1]})
    made.run()
    asked = Asked(cluster, made)
    before = asked.answers()
    told = {value.partition(b"=")[2] for _, value in before}
    assert b"none" in told
    assert len(told) > 20, told
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *made.command).ok()

    def kops(verb, *more):
        return run_kops("state", verb, "--app", capture, *more, "-B", cluster.servers)

    seen = {row["store"]: row for row in kops("verify", "-o", "json").json}
    print(seen)
    assert {name: row["status"] for name, row in seen.items()} == dict.fromkeys((*STORES, "counts"), "equal")
    logs = {store: cluster.read(made.topic(f"{store}-changelog")) for store in STORES}
    wrong = [Record(key, b"wrong", FIRST_MS + 239_000, (), number) for key in KEYS[:3] for number in (0, 1)]
    cluster.produce(made.topic("kept-changelog"), wrong)
    cluster.lose({made.topic("versions-changelog"): [0, 1]})
    refused = kops("rebuild", "--accept-inexact", "--damaged", "kept", "--yes")
    assert refused.code == 5, refused
    assert "is versioned and differs in" in refused.err
    assert "--write replace recreates its changelog" in refused.err
    kops("rebuild", "--write", "replace", "--accept-inexact", "--damaged", "kept", "--yes", "--confirm", prefix).ok()
    for store in STORES:
        now = cluster.read(made.topic(f"{store}-changelog"))
        print(store, len(now), len(logs[store]))
        assert [record.timestamp for record in now if record.partition == 0] == sorted(
            record.timestamp for record in now if record.partition == 0
        )
    assert all(row["status"] == "equal" for row in kops("verify", "-o", "json").json)
    assert asked.answers() == before
