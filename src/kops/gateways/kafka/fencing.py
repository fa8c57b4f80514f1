"""Fencing: a new writer of a transactional id makes the brokers abort what the previous one left open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kops.core.errors import OperationFailed
from kops.gateways.wire.transaction_requests import Names
from kops.gateways.wire.transactions import BatchWriter, BrokenTransaction


def fence(settings: Mapping[str, Any], writers: Iterable[Names], brokers: Sequence[str]) -> None:
    """Take over each of these writers, and wait until its open transaction is aborted.

    :param settings: librdkafka's
    :param brokers: bootstrap servers, for errors
    :raises KopsError: when the brokers do not allow it
    """
    from kafka.errors import KafkaError

    from kops.gateways.kafka.translate import translate_kafka_python

    for names in writers:
        doing = f"abort the open transaction of {names.transactional_id}"
        try:
            writer = BatchWriter(settings, names)
            try:
                writer.begin()
            finally:
                writer.close()
        except KafkaError as error:
            raise translate_kafka_python(error, doing, brokers) from error
        except (BrokenTransaction, OSError) as error:
            raise OperationFailed(f"could not {doing}: {error}", hint="nothing was sent; run the command again") from error
