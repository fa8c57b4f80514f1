"""Taking over from a redrive that was killed: its open transactions are aborted at once, and not by their time-out."""

from __future__ import annotations

from collections.abc import Mapping

from kops.operations.replay.redrive_done import Done, read_done
from kops.operations.replay.source import settings_of
from kops.operations.services import Services


def abort_open(services: Services, topic: str, anchor: str) -> None:
    """Become the writer of every partition that an unfinished redrive of a topic was sending: brokers abort what that one left open.

    :param anchor: a topic that the cluster has
    :raises KopsError: when the brokers do not let us; nothing was sent
    """
    from kops.gateways.kafka.fencing import fence
    from kops.gateways.wire.transaction_requests import Names
    from kops.spark.replay.jobs import group_of

    partitions = range(len(services.kafka.topics.existing([topic])[topic].partitions))
    left = _unfinished(read_done(services, topic, partitions))
    writers = [group_of(replay, number) for number, replay in sorted(left.items())]
    connection = services.connection
    fence(settings_of(connection, "target"), (Names(name, anchor, 0, name) for name in writers), connection.bootstrap_servers)


def taken_over(known: Mapping[int, Done]) -> list[str]:
    """Return what a plan says of the redrives that it takes over from."""
    return [
        f"takes over from {replay}: what that one has in open transactions is aborted, and sent by this one"
        for replay in sorted({*_unfinished(known).values()})
    ]


def _unfinished(known: Mapping[int, Done]) -> dict[int, str]:
    """Return the redrives that have dead letters left to send, by partition of the dead-letter topic."""
    return {number: one.replay for number, one in known.items() if one.replay}
