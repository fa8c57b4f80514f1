"""A reassignment as a plan keeps it: replicas before and after, and the throttle that is set for it and removed again."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from kops.core.models import Topic, TopicPartition
from kops.core.plan import Arguments, Json
from kops.core.replicas.planner import Replicas
from kops.core.replicas.space import Moves

LEADER_RATE, FOLLOWER_RATE = RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADER_REPLICAS, FOLLOWER_REPLICAS = THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
ALL_REPLICAS = "*"
DEFAULT_BATCH = 100

Own = Mapping[str, "str | None"]


@dataclass(frozen=True)
class Moving:
    """A partition that is being reassigned.

    :param replicas: old and new ones together; those that stay or come first, in their final order
    """

    replicas: Replicas
    adding: Replicas
    removing: Replicas

    @property
    def target(self) -> Replicas:
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def origin(self) -> Replicas:
        """The replicas without those that come; their former order is not known."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


@dataclass(frozen=True)
class Throttle:
    """A limit for the copying of replicas.

    :param rate: bytes a second, for each broker in each direction
    :param topics: own settings of the topics before, by topic; the same for ``brokers``, by id as text
    """

    rate: int
    topics: Mapping[str, Own] = field(default_factory=dict)
    brokers: Mapping[str, Own] = field(default_factory=dict)


@dataclass(frozen=True)
class Reassignment(Arguments):
    """The arguments of ``topics.reassign``.

    :param moves: replicas before and after, by partition
    :param batch: how many partitions are moved at once
    :param shares: what each broker receives and frees (``Share.as_json``)
    """

    moves: Moves
    ids: Mapping[str, str | None]
    batch: int = DEFAULT_BATCH
    throttle: Throttle | None = None
    shares: tuple[Json, ...] = ()

    def as_json(self) -> Json:
        return {
            "moves": {str(place): [list(before), list(after)] for place, (before, after) in self.moves.items()},
            "topic_ids": dict(self.ids),
            "batch": self.batch,
            "throttle": vars(self.throttle) if self.throttle else None,
            "brokers": list(self.shares),
        }

    @classmethod
    def of_json(cls, body: Json) -> Reassignment:
        moves = {place_of(text): (tuple(before), tuple(after)) for text, (before, after) in body["moves"].items()}
        throttle = Throttle(**body["throttle"]) if body["throttle"] else None
        return cls(moves, body["topic_ids"], body["batch"], throttle, tuple(body["brokers"]))


def place_of(text: str) -> TopicPartition:
    topic, _, number = text.rpartition(":")
    return TopicPartition(topic, int(number))


def placement_of(topics: Iterable[Topic], moving: Mapping[TopicPartition, Moving]) -> dict[TopicPartition, Replicas]:
    """Return where each partition's replicas lie, or will once what is under way has ended."""
    return {
        place: moving[place].target if place in moving else partition.replicas
        for topic in topics
        for place, partition in zip(topic.places, topic.partitions, strict=True)
    }


def throttled_topics(moves: Moves) -> dict[str, dict[str, str]]:
    """Return the replicas to throttle, as topics' settings: all that may be copied from, and those that are copied to."""
    found: dict[str, dict[str, list[str]]] = {}
    for place, (before, after) in sorted(moves.items()):
        if set(after) - set(before):
            lists = found.setdefault(place.topic, {name: [] for name in THROTTLED})
            lists[LEADER_REPLICAS] += [f"{place.partition}:{broker}" for broker in before]
            lists[FOLLOWER_REPLICAS] += [f"{place.partition}:{broker}" for broker in after if broker not in before]
    return {topic: {name: ",".join(entries) for name, entries in lists.items()} for topic, lists in found.items()}


def throttled_brokers(moves: Moves) -> list[int]:
    """Return the brokers that copy or are copied from."""
    return sorted({broker for before, after in moves.values() if set(after) - set(before) for broker in {*before, *after}})


def joined(own: str | None, ours: str) -> str:
    """Return a list of throttled replicas with ours added."""
    if own == ALL_REPLICAS:
        return ALL_REPLICAS
    return ",".join(dict.fromkeys([*(own or "").split(","), *ours.split(",")])).strip(",")


def without(now: str | None, partitions: Container[int], before: str | None) -> str | None:
    """Return what is left of a list of throttled replicas without some partitions, except what was there before.

    :param before: the list as it was before these partitions were added
    """
    if now in (None, ALL_REPLICAS):
        return now
    kept = (before or "").split(",")
    left = [entry for entry in str(now).split(",") if entry and (entry in kept or int(entry.partition(":")[0]) not in partitions)]
    return ",".join(left) or (before if before == "" else None)
