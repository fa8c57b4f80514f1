"""What a reassignment copies, and whether the disks have room for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kops.core.cluster.models import LogDir, sizes_by_replica
from kops.core.errors import Refused
from kops.core.models import TopicPartition
from kops.core.replicas.planner import Replicas
from kops.core.sizes import size_text

Moves = Mapping[TopicPartition, tuple[Replicas, Replicas]]
"""Replicas before and after, by partition."""


@dataclass(frozen=True)
class Share:
    """What a reassignment means for a broker, in bytes.

    :param receives: what is copied to it, before anything is deleted anywhere
    :param frees: of the replicas that it loses
    :param usable: what is free on its volumes now; None if it does not say (before Kafka 3.3), like ``total``
    :param largest: of the copies that it receives
    :param rooms: what is free by log directory
    """

    broker: int
    receives: int = 0
    frees: int = 0
    usable: int | None = None
    total: int | None = None
    largest: int = 0
    rooms: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        after = None if self.usable is None else self.usable - self.receives + self.frees
        return {
            "broker": self.broker,
            "receives_bytes": self.receives,
            "frees_bytes": self.frees,
            "usable_bytes": self.usable,
            "usable_bytes_after": after,
            "total_bytes": self.total,
            "log_dirs": [{"path": path, "usable_bytes": room} for path, room in self.rooms.items()],
        }

    @property
    def text(self) -> str:
        disk = "; how much room it has is not known"
        if self.usable is not None:
            after = self.usable - self.receives + self.frees
            each = ", ".join(f"{path} {size_text(room)}" for path, room in self.rooms.items())
            now = f"{size_text(self.usable)}{f' ({each})' if len(self.rooms) > 1 else ''}"
            disk = f"; free now {now}, afterwards {size_text(max(0, after))} of {size_text(self.total)}"
        return f"broker {self.broker} receives {size_text(self.receives)} and frees {size_text(self.frees)}{disk}"


def replica_size(place: TopicPartition, sizes: Mapping[TopicPartition, Mapping[int, int]], leader: int | None) -> int | None:
    """Return the bytes that a new replica of a partition copies: the leader's, else the largest known; None if none is known."""
    known = sizes.get(place, {})
    return known.get(leader) if leader in known else max(known.values(), default=None)  # type: ignore[arg-type]


def shares_of(
    moves: Moves, leaders: Mapping[TopicPartition, int | None], log_dirs: Mapping[int, Sequence[LogDir]]
) -> tuple[list[Share], list[TopicPartition]]:
    """Return what each broker receives and frees, and the partitions whose size is not known."""
    sizes = sizes_by_replica(one for some in log_dirs.values() for one in some)
    volumes = {broker: _room(some) for broker, some in log_dirs.items()}
    involved = {broker for before, after in moves.values() for broker in {*before} ^ {*after}}
    shares = {
        broker: Share(broker, usable=usable, total=total, rooms=_rooms(log_dirs.get(broker, ())))
        for broker in involved
        for usable, total in [volumes.get(broker, (None, None))]
    }
    unknown = []
    for place, (before, after) in moves.items():
        size = replica_size(place, sizes, leaders.get(place))
        if size is None and set(after) - set(before):
            unknown.append(place)
        for broker in set(after) - set(before):
            share = shares[broker]
            shares[broker] = replace(share, receives=share.receives + (size or 0), largest=max(share.largest, size or 0))
        for broker in set(before) - set(after):
            shares[broker] = replace(shares[broker], frees=shares[broker].frees + sizes.get(place, {}).get(broker, 0))
    return [share for _, share in sorted(shares.items())], unknown


def _room(log_dirs: Iterable[LogDir]) -> tuple[int | None, int | None]:
    """Return the usable and the total bytes of a broker's volumes; directories with the same figures are on one volume."""
    volumes = {(one.usable_bytes, one.total_bytes) for one in log_dirs if not one.problem}
    known = [(usable, total) for usable, total in volumes if usable is not None and total is not None]
    if not known or len(known) < len(volumes):
        return None, None
    return sum(usable for usable, _ in known), sum(total for _, total in known)


def _rooms(log_dirs: Iterable[LogDir]) -> dict[str, int]:
    return {
        one.path: one.usable_bytes for one in sorted(log_dirs, key=lambda one: one.path) if one.usable_bytes is not None and not one.problem
    }


def crowded(share: Share) -> str:
    """Say that a log directory may not have room for the copies that a broker puts there; empty if each has room for all of them.

    A broker takes the directory with the fewest partitions, whatever its room (``LogManager.nextLogDirs``).
    """
    path, room = min(share.rooms.items(), key=lambda one: one[1], default=("", 0))
    if not (len(share.rooms) > 1 and share.receives > room):
        return ""
    return (
        f"broker {share.broker} takes the log directory with the fewest partitions for each copy, whatever its room:"
        f" whether they fit is not known, for {path} has {size_text(room)} free"
    )


def require_room(shares: Iterable[Share]) -> None:
    """Refuse what would fill a disk: copies are made before the old replicas are deleted.

    :raises Refused: naming the first broker without enough room
    """
    for share in shares:
        if share.usable is not None and share.receives > share.usable:
            raise Refused(
                f"broker {share.broker} would receive {size_text(share.receives)}, and has {size_text(share.usable)} free",
                hint="move fewer partitions, or to more brokers (--to-brokers)",
                shares=[one.as_json() for one in shares],
            )
        if share.rooms and share.largest > max(share.rooms.values()):
            raise Refused(
                f"broker {share.broker} would receive a replica of {size_text(share.largest)},"
                f" and none of its log directories has more than {size_text(max(share.rooms.values()))} free",
                hint="make room, or leave that partition where it is",
                shares=[one.as_json() for one in shares],
            )
