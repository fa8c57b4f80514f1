"""A client of librdkafka ends with its last user, not in a collection of garbage: in its own thread that would abort the process."""

import gc
import weakref

from kops.config.connection import Connection
from kops.gateways.kafka import Kafka


def test_no_cycle_holds_a_client():
    gc.disable()
    try:
        kafka = Kafka(Connection(("127.0.0.1:1",)))
        client = kafka.groups._client
        known, admin = weakref.ref(client), client.admin
        assert admin is not None
        del kafka, client, admin
        assert known() is None
    finally:
        gc.enable()
