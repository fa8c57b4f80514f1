"""`kops state rebuild --app --write replace`: versioned stores, of which the application answers for many times as it did before."""

import random
import shutil

import pytest

from kops.gateways.machine.jars import KAFKA_VERSION
from support.captured import built_agent
from support.own_apps import FIRST_MS, App
from support.programs import Record
from support.verified import differs

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

VERSIONS = (KAFKA_VERSION, "4.1.1", "3.9.1")
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
        self.cluster, self.made = cluster, made
        self.ends = {partition: end for partition, (_, end) in cluster.ends(made.topic("out")).items()}

    def answers(self):
        shutil.rmtree(self.made.folder / "state", ignore_errors=True)
        self.cluster.produce(self.made.topic("questions"), questions(FIRST_MS + 240_000))
        self.made.run()
        new = [one for one in self.cluster.read(self.made.topic("out")) if one.offset >= self.ends.get(one.partition, 0)]
        self.ends |= {one.partition: one.offset + 1 for one in new}
        return sorted((one.key, one.value) for one in new)


def started(cluster, prefix, run_kops, folder, version):
    """Run the application, ask it, and capture it; return it, who asks, what it answered, and the capture."""
    made = App(cluster, "versions", prefix, folder / "app", version, main="Versions", inputs=list(INPUTS))
    cluster.create_all({made.topic(name): 2 for name in (*INPUTS, "out")})
    cluster.produce_all({made.topic(name): given(name) for name in INPUTS[:-1]})
    made.run()
    asked = Asked(cluster, made)
    before = asked.answers()
    values = {value.partition(b"=")[2] for _, value in before}
    assert b"none" in values
    assert len(values) > 20, values
    capture = folder / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *made.command).ok()
    return made, asked, before, capture


@pytest.mark.long
@pytest.mark.parametrize("version", [*VERSIONS, "3.6.2"])
def test_versioned_stores_come_back(cluster, prefix, run_kops, tmp_path, version):
    made, asked, before, capture = started(cluster, prefix, run_kops, tmp_path, version)

    def kops(verb, *more):
        return run_kops("state", verb, "--app", capture, *more, "-B", cluster.servers)

    seen = {row["store"]: row for row in kops("verify", "-o", "json").json}
    print(seen)
    assert {name: row["verdict"] for name, row in seen.items()} == dict.fromkeys((*STORES, "counts"), "proven")
    logs = {store: cluster.read(made.topic(f"{store}-changelog")) for store in STORES}
    wrong = [Record(key, b"wrong", FIRST_MS + 239_000, (), number) for key in KEYS[:3] for number in (0, 1)]
    cluster.produce(made.topic("kept-changelog"), wrong)
    cluster.lose({made.topic("versions-changelog"): [0, 1]})
    refused = kops("rebuild", "--accept-doubtful", "--damaged", "kept", "--yes")
    assert refused.code == 5, refused
    assert "is versioned and differs in" in refused.err
    assert "--write replace recreates its changelog" in refused.err
    kops("rebuild", "--write", "replace", "--accept-doubtful", "--damaged", "kept", "--yes", "--confirm", prefix).ok()
    for store in STORES:
        now = cluster.read(made.topic(f"{store}-changelog"))
        print(store, len(now), len(logs[store]))
        assert [record.timestamp for record in now if record.partition == 0] == sorted(
            record.timestamp for record in now if record.partition == 0
        )
    assert not any(differs(row) for row in kops("verify", "-o", "json").json)
    assert asked.answers() == before


class Moved(App):
    """The same code under another application.id, over the topics of the first."""

    first = ""

    @property
    def command(self):
        words = super().command
        return [*words[: words.index(self.application)], self.first, *self.settings, f"application.id={self.application}"]

    def topic(self, name):
        return f"{self.first if name in (*INPUTS, 'out') else self.application}-{name}"


def answered(answers, store, time=None):
    """Return the values that the store's keys were reported to have, at a time: of those that had one."""
    question = (store if time is None else f"{store}@{time}").encode()
    found = {
        key.decode(): answer.partition(b"=")[2].decode().split("@")[0] for key, answer in answers if answer.partition(b"=")[0] == question
    }
    assert len(found) == len(KEYS)
    return {key: value for key, value in found.items() if value != "none"}


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_versioned_stores_are_asked_for_and_given_to_another_application(cluster, prefix, run_kops, tmp_path, version):
    _, _, before, capture = started(cluster, prefix, run_kops, tmp_path, version)

    def kops(verb, *more):
        return run_kops("state", verb, "--app", capture, *more, "-B", cluster.servers)

    def shown(store, *more):
        return {row["key"]: row["value"] for row in kops("query", "--all", "--store", store, *more, "-o", "json").ok().json}

    for store in STORES:
        latest = answered(before, store)
        assert len(latest) > 3
        assert shown(store) == latest
        assert shown(store, "--from", "input") == latest
        for time in (FIRST_MS + 195_000, FIRST_MS + 220_000):
            assert shown(store, "--at", f"@{time}") == answered(before, store, time)
    key = next(iter(answered(before, "kept")))
    (row,) = kops("query", key, "--store", "kept", "-o", "json").ok().json
    assert row["value"] == answered(before, "kept")[key]

    other = Moved(cluster, "versions", f"{prefix}-other", tmp_path / "other", version, main="Versions", inputs=list(INPUTS))
    other.first = prefix
    kops("rebuild", "--into", other.application, "--accept-doubtful", "--yes").ok()
    done = kops("diff", "--against", other.application).ok()
    assert f"{prefix} and {other.application} hold the same: counts, kept, versions" in done.err
    assert Asked(cluster, other).answers() == before
    logs = {store: cluster.ends(other.topic(f"{store}-changelog")) for store in STORES}
    kops("rebuild", "--into", other.application, "--accept-doubtful", "--yes").ok()
    assert logs == {store: cluster.ends(other.topic(f"{store}-changelog")) for store in STORES}

    written = [record for record in cluster.read(other.topic("kept-changelog")) if record.timestamp > FIRST_MS + 200_000]
    wrong = Record(written[0].key, b"wrong", written[0].timestamp, (), written[0].partition)
    cluster.produce(other.topic("kept-changelog"), [wrong])
    (row,) = kops("diff", "--against", other.application, "-o", "json").json
    assert (row["store"], row["key"], row["actual"]) == ("kept", wrong.key.decode(), "wrong")
    refused = kops("rebuild", "--into", other.application, "--accept-doubtful", "--yes")
    assert (refused.code, "differs in 1 versions, which would stay" in refused.err) == (5, True), refused.err


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_a_snapshot_of_versioned_stores_comes_back(cluster, prefix, run_kops, tmp_path, version):
    """It has no versions that the stores never accepted: in the order of time, none would be too late for them."""
    made, asked, before, capture = started(cluster, prefix, run_kops, tmp_path, version)
    folder = tmp_path / "kept"
    run_kops("state", "snapshot", prefix, "--to", folder, "-B", cluster.servers).ok()
    assert "nothing to do" in run_kops("state", "restore", folder, "--yes", "-B", cluster.servers).ok().err
    refused = run_kops("state", "verify", "--app", capture, "--snapshot", folder, "-B", cluster.servers)
    assert (refused.code, "store kept is made of tables or versions" in refused.err) == (5, True), refused.err
    (row,) = (
        run_kops("state", "verify", "--app", capture, "--snapshot", folder, "--store", "counts", "-o", "json", "-B", cluster.servers)
        .ok()
        .json
    )
    assert row["verdict"] == "proven"
    cluster.delete_all(made.topic(f"{store}-changelog") for store in STORES)
    run_kops("state", "restore", folder, "--yes", "-B", cluster.servers).ok()
    assert asked.answers() == before
