"""Records that an application's producer, or the brokers, refuse as too large: a rebuild by its program leaves them out as it did."""

import random

import pytest

from support.captured import built_agent
from support.own_apps import FIRST_MS, App, records
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

PASSES = ["default.production.exception.handler=Apps$Passing"]
CHANCE = random.Random("incompressible")
ALIKE = [Record(b"key-%d" % at, b"y" * 2000, FIRST_MS + 900_000 + at) for at in range(4)]
UNLIKE = [Record(b"key-%d" % at, b"z" + bytes(CHANCE.choices(range(48, 123), k=2000)), FIRST_MS + 900_000 + at) for at in range(5)]
ONE_EACH = "producer.batch.size=1"  # older producers split a batch that is too large into one of the same size


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        (["producer.max.request.size=1000"], b"yz"),
        pytest.param(["topic.max.message.bytes=1000", ONE_EACH], b"yz", marks=pytest.mark.long),
        (["topic.max.message.bytes=1000", "producer.compression.type=gzip", ONE_EACH], b"z"),
    ],
)
def test_what_is_too_large_is_left_out_as_the_application_left_it_out(cluster, prefix, run_kops, tmp_path, settings, refused):
    app = App(cluster, "texts", prefix, tmp_path / "app", settings=[*PASSES, *settings])
    cluster.create_all({app.topic("in"): 3, app.topic("out"): 3})
    cluster.produce(app.topic("in"), [*records(200), *ALIKE, *UNLIKE])
    app.run()
    held = app.view("letters")
    assert {letter for letter in (b"y", b"z") if letter not in held} == {bytes([letter]) for letter in refused}
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()

    cluster.empty(app.topic("letters-changelog"))
    common = ("--app", capture, "--store", "letters", "-B", cluster.servers)
    done = run_kops("state", "rebuild", *common, "--yes").ok()
    assert app.view("letters") == held
    count = len(UNLIKE) + (len(ALIKE) if b"y" in refused else 0)
    assert f"{count} records for {app.topic('letters-repartition')} were too large" in (done.out + done.err).replace("\n", " ")
