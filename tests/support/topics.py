"""``kops topics`` for tests, and clients to fill and use topics."""

import contextlib

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from support.patience import HANG_SECONDS


@pytest.fixture
def admin(broker):
    return AdminClient(broker.client)


@pytest.fixture
def topics(broker, run_kops, monkeypatch, admin):
    """Run ``kops topics VERB ...`` on the broker; what it creates is deleted afterwards."""
    monkeypatch.setenv("KOPS_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    before = set(admin.list_topics(timeout=HANG_SECONDS).topics)
    made = []

    def run(verb, *arguments):
        if verb == "create":
            made.extend(argument for argument in arguments if not str(argument).startswith("-"))
        return run_kops("topics", verb, *arguments)

    yield run
    left = [name for name in dict.fromkeys(made) if name in admin.list_topics(timeout=HANG_SECONDS).topics and name not in before]
    if left:
        for future in admin.delete_topics(left, operation_timeout=HANG_SECONDS).values():
            with contextlib.suppress(KafkaException):  # another fixture was faster
                future.result(HANG_SECONDS)


@pytest.fixture
def eager_cleaner(cluster):
    """Let the broker's cleaner look for work all the time; by itself it rests for 15 s in between."""
    node = str(min(cluster.admin.list_topics(timeout=HANG_SECONDS).brokers))

    def rest(milliseconds):
        kind = AlterConfigOpType.SET if milliseconds else AlterConfigOpType.DELETE
        entry = ConfigEntry("log.cleaner.backoff.ms", milliseconds, incremental_operation=kind)
        resource = ConfigResource(ResourceType.BROKER, node, incremental_configs=[entry])
        cluster.admin.incremental_alter_configs([resource])[resource].result(HANG_SECONDS)

    rest("100")
    yield
    rest(None)


def produce(broker, topic, count=3):
    producer = Producer(broker.client)
    for number in range(count):
        producer.produce(topic, key=b"k", value=str(number).encode())
    assert producer.flush(HANG_SECONDS) == 0


def commit(broker, topic, group, offset=1):
    consumer = Consumer({**broker.client, "group.id": group})
    consumer.commit(offsets=[At(topic, 0, offset)], asynchronous=False)
    consumer.close()


def whole_partition(client, topic, isolation="read_uncommitted"):
    """Return (offset, key, value, timestamp, headers) of all that librdkafka reads of partition 0."""
    settings = {"group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True, "isolation.level": isolation}
    consumer = Consumer({**client, **settings, "check.crcs": True})
    consumer.assign([At(topic, 0, 0)])
    found = []
    while True:
        for message in consumer.consume(1000, timeout=1):
            if message.error():
                consumer.close()
                return found
            found.append((message.offset(), message.key(), message.value(), message.timestamp()[1], message.headers() or []))


def body_of(topics, name):
    return topics("describe", name, "-o", "json").ok().json[0]
