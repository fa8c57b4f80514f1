"""An idempotent producer of whole record batches (KIP-98) through kafka-python: its requests, and the meaning of the answers.

A producer id, and a sequence number per partition: a batch whose answer was lost is resent and recognized by the broker, and the order is
kept. ``batch_producer`` writes one topic with it, ``transactions`` adds transactions and positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kops.core.rights import missing_right
from kops.formats.batches.header import Producer
from kops.gateways.wire.connections import REQUEST_MILLISECONDS, leader, refresh
from kops.gateways.wire.kafka_python import request_class

TRANSACTION_MILLISECONDS = 60_000
_PRODUCE_VERSIONS = {"min_version": 3, "max_version": 9}
"""Of Produce requests: from the first that carries record batches of magic 2 to the last that names topics."""
_ALL_IN_SYNC_REPLICAS = -1
_SEQUENCES = 0x7FFF_FFFF
"""Sequence numbers restart at 0 after the largest int32."""
_TOO_LARGE = ("MESSAGE_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
_WRITTEN_ALREADY = "DUPLICATE_SEQUENCE_NUMBER"
"""Of a batch that was written before the last five, of which the broker still knows the offsets (``ProducerStateEntry``)."""


@dataclass(frozen=True)
class ProduceAnswer:
    """A broker's answer about a batch.

    :param error: one of ``kafka.errors``; None if the batch is written, now or when it was first sent
    :param text: the broker's own message
    """

    error: Any = None
    text: str | None = None

    @property
    def is_too_large(self) -> bool:
        """Whether the broker may accept the batch in parts."""
        return self.error is not None and self.error.message in _TOO_LARGE

    def reason(self, topic: str) -> str:
        text, right = self.text or str(self.error.description), missing_right(self.error.message, f"produce to {topic}")
        return f"{text} (lacks {right})" if right else text


def answers_of(response: Any) -> dict[int, ProduceAnswer]:
    """Return the answers about the batches of a Produce request to one topic, by partition."""
    return {one.index: _answer(one.error_code, getattr(one, "error_message", None)) for one in response.responses[0].partition_responses}


def _answer(code: int, text: str | None) -> ProduceAnswer:
    from kafka.errors import for_code

    error = for_code(code) if code else None
    return ProduceAnswer() if error is None or error.message == _WRITTEN_ALREADY else ProduceAnswer(error, text)


def later_sequence(sequence: int, records: int) -> int:
    """Return the sequence number of the record that comes this many after another."""
    return sequence + records & _SEQUENCES


class IdempotentProducer:
    """Numbers batches by partition, and sends them to the leaders.

    :param client: of ``connections.connected``
    :param transactional_id: None for a producer without transactions
    """

    def __init__(self, client: Any, transactional_id: str | None = None) -> None:
        self.transactional_id = transactional_id
        self._client = client
        self._identity = Producer(-1, -1, 0)
        self._sequences: dict[tuple[str, int], int] = {}
        self._known_topics: set[str] = set()

    def close(self) -> None:
        """Close the connections; brokers abort an open transaction once it times out."""
        self._client.close()

    def _identity_request(self) -> Any:
        """Request a producer id, which ends what another producer of the same transactional id left open."""
        request = request_class("InitProducerIdRequest")
        identity = {"transactional_id": self.transactional_id, "transaction_timeout_ms": TRANSACTION_MILLISECONDS}
        # -1: there is no producer id to continue with (KIP-360)
        return request(**identity, producer_id=-1, producer_epoch=-1, min_version=0, max_version=4)

    def _become(self, answer: Any) -> None:
        """Use the producer id of an answer; the sequence numbers start with it."""
        self._identity = Producer(answer.producer_id, answer.producer_epoch, 0, transactional=self.transactional_id is not None)
        self._sequences = {}

    def _numbered(self, topic: str, partition: int, records: int) -> Producer:
        """Return the producer's identity for the next batch of a partition, with the batch's sequence number."""
        sequence = self._sequences.get((topic, partition), 0)
        self._sequences[topic, partition] = later_sequence(sequence, records)
        return replace(self._identity, sequence=sequence)

    def _produce_request(self, topic: str, batches: Mapping[int, bytes]) -> Any:
        request = request_class("ProduceRequest")
        data = request.TopicProduceData
        return request(
            transactional_id=self.transactional_id,
            acks=_ALL_IN_SYNC_REPLICAS,
            timeout_ms=REQUEST_MILLISECONDS,
            topic_data=[
                data(name=topic, partition_data=[data.PartitionProduceData(index=at, records=batch) for at, batch in batches.items()])
            ],
            **_PRODUCE_VERSIONS,
        )

    def _leader(self, topic: str, partition: int) -> int | None:
        if topic not in self._known_topics:
            self._known_topics.add(topic)
            self._refresh(topic)
        return leader(self._client, topic, partition)

    def _refresh(self, topic: str) -> None:
        refresh(self._client, topic)
