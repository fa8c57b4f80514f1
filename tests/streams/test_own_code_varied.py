"""An application whose stores each use another library, handler, serde, store or partitioner: none is rebuilt wrongly and called exact."""

import json
import os
import random
from pathlib import Path

import pytest

from kops.config.paths import directories
from kops.gateways.machine.jars import KAFKA_VERSION, class_path, jars_of, kafka_set
from support.captured import SOURCES as CAPTURED
from support.captured import built_agent
from support.java_judge import JUDGE
from support.own_apps import FIRST_MS, App
from support.own_apps import SOURCES as APPS
from support.own_code import TREE
from support.programs import Record
from support.streams import compiled

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

SOURCES = TREE / "tests" / "streams" / "varied_apps"
PARTITIONS = {"in": 2, "numbers": 1, "keyless": 2, "times": 1, "traced": 1}
HANDLERS = [
    "deserialization.exception.handler=Varied$Passing",
    "processing.exception.handler=org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler",
]
DANISH = "-Duser.language=da -Duser.country=DK"


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


class Varied(App):
    @property
    def path(self) -> str:
        cache = directories(os.environ).cache
        jars = [*jars_of(kafka_set(KAFKA_VERSION), cache), *(jar for jar in jars_of(JUDGE, cache) if "jackson" not in jar.name)]
        also = [APPS / "Apps.java", CAPTURED / "windows" / "OwnWindows.java"]
        return class_path([*jars, compiled(SOURCES / "Varied.java", KAFKA_VERSION, jars, also), SOURCES / "resources"])


def given(name: str) -> list[Record]:
    chosen = random.Random(name)
    records = []
    for at in range(120):
        value = b"%c%d" % (chosen.choice(b"abcdefgh"), at)
        key = b"key-%d" % chosen.randrange(12)
        if name == "numbers":
            value = at.to_bytes(8, "big") if at % 10 else b"short"
        elif name == "keyless" and at % 2:
            key = None
        headers = (("trace", b"%d" % at), ("empty", None), ("trace", "ü".encode())) if name == "traced" else ()
        records.append(Record(key, value, FIRST_MS + at * 1000, headers))
    return records


@pytest.mark.long
def test_none_is_wrong_and_called_right(cluster, prefix, run_kops, tmp_path, monkeypatch):
    file, capture = tmp_path / "stores", tmp_path / "capture.json"
    file.write_text("3\n4\n")
    monkeypatch.setenv("SERDE_PREFIX", ">")
    settings = [*HANDLERS, f"config.file={file}"]
    app = Varied(cluster, "varied", prefix, tmp_path / "app", main="Varied", inputs=[*PARTITIONS], settings=settings)
    cluster.create_all({app.topic(name): count for name, count in PARTITIONS.items()})
    cluster.produce_all({app.topic(name): given(name) for name in PARTITIONS})
    with monkeypatch.context() as around:
        around.setenv("JAVA_TOOL_OPTIONS", DANISH)
        app.run()
        run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
    body = json.loads(capture.read_text())
    stores = [each["name"] for each in body["stores"]]
    reads = {(each["kind"], Path(each["name"]).name) for each in body["surroundings"]["read"]}
    assert {("variable", "SERDE_PREFIX"), ("file", "stores")} <= reads
    before = {store: app.view(store) for store in stores}
    assert all(before.values()), {store: len(view) for store, view in before.items()}
    assert all(entry.value.startswith(b"og ") for entry in before["bundle"].values())

    for store in stores:
        cluster.empty(app.topic(f"{store}-changelog"))
    rebuilt = run_kops("state", "rebuild", "--app", capture, "--accept-doubtful", "--yes", "-B", cluster.servers).ok()
    assert "when the program was captured" not in rebuilt.err + rebuilt.out
    after = {store: app.view(store) for store in stores}
    plan = run_kops("journal", "show", "last", "-o", "json").json["plan"]
    wrong = {store: plan["arguments"]["stores"][store]["verdict"] for store in stores if after[store] != before[store]}
    assert "proven" not in wrong.values()
    assert "computed" not in wrong.values()
