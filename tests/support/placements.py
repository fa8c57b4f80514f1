"""Placements of replicas for tests, and what changing them copies."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping

from kops.core.models import TopicPartition
from support.apache_tools import SOURCES
from support.patience import HANG_SECONDS
from support.streams import java_command

Placement = Mapping[TopicPartition, tuple[int, ...]]


def racks_of(brokers: int, racks: int = 3) -> dict[int, str]:
    return {broker: f"rack-{broker % racks}" for broker in range(1, brokers + 1)}


def spread(replicas: Iterable[int], racks: Mapping[int, str]) -> int:
    return len({racks[broker] for broker in replicas})


def copied(before: Placement, after: Placement, sizes: Mapping[TopicPartition, int]) -> int:
    """Return the bytes that brokers have to copy."""
    return sum(len(set(replicas) - set(before[place])) * sizes[place] for place, replicas in after.items())


def counts(placement: Placement, *, leaders: bool = False) -> Counter[int]:
    return Counter(broker for replicas in placement.values() for broker in (replicas[:1] if leaders else replicas))


def width(found: Counter[int], brokers: Iterable[int]) -> int:
    """Return by how much the fullest broker has more than the emptiest."""
    each = [found[broker] for broker in brokers]
    return max(each) - min(each)


def made(
    partitions: int, on: Iterable[int], factor: int, seed: int
) -> tuple[dict[TopicPartition, tuple[int, ...]], dict[TopicPartition, int]]:
    """Make topics of 1 to 50 partitions at random, and their sizes."""
    chance, brokers = random.Random(seed), sorted(on)
    placement: dict[TopicPartition, tuple[int, ...]] = {}
    while len(placement) < partitions:
        topic = f"t{len(placement)}"
        for number in range(min(chance.randint(1, 50), partitions - len(placement))):
            placement[TopicPartition(topic, number)] = tuple(chance.sample(brokers, factor))
    return placement, {place: chance.randrange(1 << 30) for place in placement}


def apaches(placement: Placement, racks: Mapping[int, str]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return what ``kafka-reassign-partitions --generate`` proposes for all brokers."""
    lines = [" ".join(f"{broker}:{rack}" for broker, rack in racks.items())]
    lines += [f"{place.topic} {place.partition} {','.join(map(str, replicas))}" for place, replicas in placement.items()]
    command = java_command("ApacheReassignment", sources=SOURCES)
    ended = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=HANG_SECONDS, check=True)
    found = {}
    for line in ended.stdout.splitlines():
        topic, number, replicas = line.split(" ")
        found[TopicPartition(topic, int(number))] = tuple(map(int, replicas.split(",")))
    return found
