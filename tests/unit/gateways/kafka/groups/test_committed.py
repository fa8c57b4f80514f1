"""Commits while the group's coordinator moves: brokers tell it for each partition."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError
from kafka.errors import CoordinatorLoadInProgressError, GroupAuthorizationFailedError, NoError, NotCoordinatorError
from kafka.structs import TopicPartition as KafkaPython

from kops.config.connection import Connection
from kops.core.errors import KopsError
from kops.core.models import CommittedOffset, TopicPartition
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.groups.committed import CommittedOffsets

PLACE = TopicPartition("orders", 0)
OFFSETS = {PLACE: CommittedOffset(5, "AgAAAAAAAACC", None)}


class Admin:
    """Answers each commit with the next error."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.asked = 0
        self._manager = SimpleNamespace(cluster=SimpleNamespace(_coordinators={}))

    def alter_group_offsets(self, _group, _offsets):
        self.asked += 1
        return {KafkaPython("orders", 0): self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]}


class Librdkafka:
    """Answers each commit with the next error, as librdkafka's admin client."""

    def __init__(self, *errors):
        self.errors = list(errors)

    def alter_consumer_group_offsets(self, _request, **_):
        future, error = Future(), self.errors.pop(0)
        answer = SimpleNamespace(topic="orders", partition=0, error=error and KafkaError(error))
        future.set_result(SimpleNamespace(topic_partitions=[answer]))
        return {"billing": future}


def commit(admin, timeout=30.0, offsets=OFFSETS, plain=None, **connection):
    client = Client(Connection(("127.0.0.1:1",), timeout=timeout, **connection))
    client.second = admin
    if plain is not None:
        client.__dict__["admin"] = plain
    return CommittedOffsets(client).commit("billing", offsets)


def test_a_coordinator_that_moves_is_asked_again():
    admin = Admin(NotCoordinatorError, CoordinatorLoadInProgressError, NoError)
    assert commit(admin) == {PLACE: None}
    assert admin.asked == 3


def test_another_error_is_that_of_the_partition():
    admin = Admin(GroupAuthorizationFailedError)
    (error,) = commit(admin).values()
    assert isinstance(error, KopsError)
    assert admin.asked == 1


def test_one_that_never_comes_ends_with_the_reason():
    with pytest.raises(KopsError, match="could not commit offsets of group billing"):
        commit(Admin(NotCoordinatorError), timeout=0.3)


PLAIN = {PLACE: CommittedOffset(5)}


def test_without_metadata_it_is_asked_again_too():
    """By kafka-python, which looks the coordinator up again; by librdkafka where only that can connect."""
    admin, plain = Admin(CoordinatorLoadInProgressError, NoError), Librdkafka(KafkaError.NOT_COORDINATOR)
    assert commit(admin, offsets=PLAIN, plain=plain) == {PLACE: None}
    assert (admin.asked, plain.errors) == (2, [])
    plain = Librdkafka(KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, None)
    assert commit(Admin(NoError), offsets=PLAIN, plain=plain, security_protocol="SSL", keystore_file="store.p12") == {PLACE: None}
    assert plain.errors == []
    (error,) = commit(Admin(NoError), offsets=PLAIN, plain=Librdkafka(KafkaError.GROUP_AUTHORIZATION_FAILED)).values()
    assert isinstance(error, KopsError)
