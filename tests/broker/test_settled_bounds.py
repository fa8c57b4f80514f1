"""What an application committed just before it stopped, while a transaction hides it from ``read_committed``, on a real broker."""

import json
import time
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from kops.core.errors import Refused
from kops.core.models import NewTopic, TopicPartition
from kops.core.records.models import OffsetRange
from kops.gateways.kafka import Kafka
from kops.gateways.wire.batch_consumer import has_only
from kops.operations.engine import stable
from kops.operations.engine.stable import bounds_of_application, own_transactions
from kops.operations.state.snapshot_topics import OwnTopics, stopped_application, unprocessed
from support.patience import HANG_SECONDS
from support.programs import Program, Record

pytestmark = pytest.mark.broker


@pytest.fixture
def begin(broker, unique):
    """Begin a transaction that writes into a partition; aborted in the end."""
    begun = []

    def begin(place, transactional_id=None):
        producer = Producer({**broker.client, "transactional.id": transactional_id or unique("tx"), "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(place.topic, b"open", partition=place.partition)
        assert producer.flush(HANG_SECONDS) == 0
        begun.append(producer)
        return producer

    yield begin
    for producer in begun:
        producer.abort_transaction(30)


@pytest.fixture
def place(topic):
    return TopicPartition(topic(), 0)


@pytest.fixture
def hidden(begin, place, cluster):
    """Hide a record by a transaction that began before it."""
    producer = begin(place)
    cluster.produce(place.topic, [Record(b"k", b"committed", 1_000_000, (), place.partition)])
    return producer


@pytest.fixture
def services(broker):
    kafka, steps = Kafka(broker.connection), []
    yield SimpleNamespace(kafka=kafka, connection=broker.connection, progress=SimpleNamespace(step=steps.append), steps=steps)
    kafka.close()


@pytest.fixture
def ends_meanwhile(monkeypatch):
    """Abort a transaction as soon as kops waits for it."""

    def ends(producer):
        def end(seconds):
            producer.abort_transaction(30)
            producer.begin_transaction()
            monkeypatch.setattr(stable, "time", time)

        monkeypatch.setattr(stable, "time", SimpleNamespace(monotonic=time.monotonic, sleep=end))

    return ends


def test_records_that_a_transaction_hides_are_waiting_too(place, hidden, services, ends_meanwhile):
    ends_meanwhile(hidden)
    assert unprocessed(services, [place], {}, isolation="read_committed") == {place: (0, 3)}
    assert services.steps == [f"waiting for the end of the transaction that is open in {place} at offset 0"]


def test_a_cut_of_a_stopped_application_has_what_a_transaction_hid(place, hidden, services, ends_meanwhile, cluster, group):
    ends_meanwhile(hidden)
    cluster.commit(group, {(place.topic, 0): 0})
    topics = OwnTopics(group, {"store": NewTopic(place.topic, 1)}, (), {})
    assert stopped_application(services, topics, isolation="read_committed").bounds[place].log_end_offset == 3


@pytest.mark.parametrize("transactional_id", ["kops-orders-store-0", "orders-f0-1"])
def test_what_a_killed_kops_left_open_is_not_waited_for(place, begin, services, ends_meanwhile, transactional_id):
    ends_meanwhile(begin(place, transactional_id))
    found = bounds_of_application(services, [place], isolation="read_committed", writer=own_transactions("orders"))
    waited = not transactional_id.startswith("kops")
    assert (found[place].log_end_offset, len(services.steps)) == ((2, 1) if waited else (0, 0))


@pytest.mark.parametrize("in_transaction", [False, True], ids=["alone", "committed"])
def test_what_the_application_wrote_behind_a_killed_kops_is_waited_for(
    place, begin, services, ends_meanwhile, broker, unique, in_transaction
):
    left = begin(place, "kops-orders-store-0")
    settings = {"transactional.id": unique("orders")} if in_transaction else {}
    application = Producer({**broker.client, "log_level": 0, **settings})
    if in_transaction:
        application.init_transactions(30)
        application.begin_transaction()
    application.produce(place.topic, b"since", partition=place.partition)
    assert application.flush(HANG_SECONDS) == 0
    if in_transaction:
        application.commit_transaction(30)
    ends_meanwhile(left)
    found = bounds_of_application(services, [place], isolation="read_committed", writer=own_transactions("orders"))
    assert services.steps == [f"waiting for the end of the transaction that is open in {place} at offset 0"]
    assert found[place].log_end_offset == (4 if in_transaction else 3)


def test_records_that_cannot_be_read_may_be_anybodys(place, cluster, broker):
    """A wait for nothing is better than a state without what the application committed."""
    without_id, whole = {-1}, OffsetRange(0, 3)
    producer = Producer({**broker.client, "enable.idempotence": False})
    for at in range(3):
        producer.produce(place.topic, b"%d" % at, partition=place.partition)
        assert producer.flush(HANG_SECONDS) == 0
    assert has_only(broker.client, place, whole, without_id)
    cluster.trim(place.topic, {place.partition: 1})
    assert not has_only(broker.client, place, whole, without_id), "the first one is gone"


@pytest.mark.long
@pytest.mark.spark
def test_changelogs_are_compared_with_what_a_transaction_hides(begin, ends_meanwhile, run_kops, cluster, unique, broker, tmp_path):
    programs = [Program("table", "string", value="string").named(unique(name)) for name in ("one", "other")]
    cluster.create_all({each.changelog: 1 for each in programs}, {"cleanup.policy": "compact"})
    cluster.produce_all({each.changelog: [Record(b"k", bytes(8) + b"v", 1_000_000, (), 0)] for each in programs})
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps(programs[0].state_file("exactly_once_v2")))
    command = ("state", "diff", file, "--against", programs[1].application, "-B", broker.bootstrap_servers)
    assert "hold the same" in run_kops(*command).ok().err
    producer = begin(TopicPartition(programs[1].changelog, 0))
    cluster.produce(programs[1].changelog, [Record(b"more", bytes(8) + b"v", 1_000_000, (), 0)])
    ends_meanwhile(producer)
    hidden = run_kops(*command)
    assert (hidden.code, "more" in hidden.out, "hold the same" in hidden.err) == (1, True, False), hidden.err


def test_a_transaction_that_stays_open_is_named(place, hidden, services, monkeypatch):
    monkeypatch.setattr(stable, "PATIENCE_SECONDS", 0)
    with pytest.raises(Refused) as raised:
        unprocessed(services, [place], {}, isolation="read_committed")
    assert f"the transaction that is open in {place} at offset 0: it hides what follows" in raised.value.message
    assert f"`kops diagnose {place.topic}` says how it is ended" in raised.value.hint
    assert unprocessed(services, [place], {}, isolation="read_uncommitted") == {place: (0, 2)}
