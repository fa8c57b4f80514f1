"""librdkafka may crash when a second question about a topic new to it comes while the first is open: kops waits in between."""

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Timer
from types import SimpleNamespace

from confluent_kafka.admin import ListOffsetsResultInfo

from kops.config.connection import Connection
from kops.core.models import Bounds, TopicPartition
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.offsets import Offsets

PARTITIONS = [TopicPartition("orders", number) for number in range(3)]


class Admin:
    """Answers a little later, partition by partition, and notes what was open when it was asked."""

    def __init__(self):
        self.open_when_asked = []
        self._futures = []

    def list_offsets(self, asked, **_options):
        self.open_when_asked.append(sum(not future.done() for future in self._futures))
        futures = {partition: Future() for partition in asked}
        self._futures += futures.values()
        for number, future in enumerate(futures.values()):
            Timer(0.02 * number, future.set_result, [ListOffsetsResultInfo(7, -1, -1)]).start()
        return futures

    def poll(self, _seconds):
        return 0


def asked():
    client = Client(Connection(bootstrap_servers=("127.0.0.1:1",)))
    client.__dict__["admin"] = admin = Admin()
    client.presence = SimpleNamespace(down=dict, doubt=lambda: None)
    return client, admin


def test_both_ends_are_asked_one_after_the_other():
    client, admin = asked()
    assert Offsets(client).bounds(PARTITIONS) == dict.fromkeys(PARTITIONS, Bounds(7, 7))
    assert admin.open_when_asked == [0, 0]


def test_nor_by_two_threads():
    client, admin = asked()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: Offsets(client).bounds(PARTITIONS), range(4)))
    assert found == [dict.fromkeys(PARTITIONS, Bounds(7, 7))] * 4
    assert admin.open_when_asked == [0] * 8
