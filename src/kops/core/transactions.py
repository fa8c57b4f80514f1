"""Transactions as coordinators and partition leaders report them (KIP-664), and those that a plan aborts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from kops.core.models import TopicPartition
from kops.core.plan import Arguments, Json

ONGOING = "Ongoing"


@dataclass(frozen=True)
class Transaction:
    """A transactional id, as its coordinator reports it.

    :param state: by Kafka's name, such as ``Ongoing`` or ``CompleteCommit``
    :param started: milliseconds since the epoch; None unless a transaction is open
    """

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int
    producer_epoch: int | None = None
    timeout_ms: int | None = None
    started: int | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class ProducerState:
    """What the leader of a partition remembers of a producer.

    :param last_timestamp: of its last batch, in milliseconds since the epoch
    :param coordinator_epoch: of the coordinator that last wrote a marker for it; None: none did
    :param start_offset: of its open transaction; None: it has none here
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int | None
    last_timestamp: int | None
    coordinator_epoch: int | None
    start_offset: int | None


@dataclass(frozen=True)
class Left:
    """A transaction that is left open in a partition.

    :param coordinator_epoch: -1: no coordinator has written a marker for its producer
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def target(self) -> str:
        return f"{self.place} from {self.start_offset}"


@dataclass(frozen=True)
class Abortion(Arguments):
    """Transactions to abort.

    :param left: those that no coordinator ends, each in its partition
    :param ids: transactional ids whose open transaction their coordinators abort
    """

    left: Sequence[Left] = ()
    ids: Sequence[str] = ()

    def as_json(self) -> Json:
        return {"left": [asdict(one) for one in self.left], "ids": list(self.ids)}

    @classmethod
    def of_json(cls, body: Json) -> Abortion:
        return cls(tuple(Left(**one) for one in body["left"]), tuple(body["ids"]))
