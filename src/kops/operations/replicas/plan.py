"""The only planner of reassignments: what is asked for, as replicas of partitions, and what that costs each broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kops.core.cluster.models import LogDir, sizes_by_replica
from kops.core.errors import KopsError, Refused, UsageProblem, answer_or_error
from kops.core.findings import counted, names_text
from kops.core.models import Partition, Topic, TopicPartition
from kops.core.plan import Item, Plan
from kops.core.replicas.planner import Aim, Replicas, plan_replicas
from kops.core.replicas.reassignment import DEFAULT_BATCH, Moving, Reassignment, Throttle, placement_of
from kops.core.replicas.space import Moves, Share, crowded, replica_size, require_room, shares_of
from kops.core.rights import Right, reason
from kops.core.sizes import size_text
from kops.core.topics.settings import MIN_IN_SYNC
from kops.operations.replicas import throttle
from kops.operations.services import Services
from kops.operations.topics.listing import select_partitions

REASSIGN = "topics.reassign"
THROTTLE = "throttle"
"""The target of the item that limits the copying; no topic of this name is in the way: partitions have a number."""
REST = "remove the throttle"
_SHOWN_BROKERS = 20


@dataclass(frozen=True)
class Request:
    """What a reassignment is asked for.

    :param to_brokers: those that may have replicas afterwards; empty: all in service
    :param off_brokers: those that may not
    :param last: those that are to be the last choice as leaders
    :param rate: bytes a second at which each broker copies; None: no limit
    """

    factor: int | None = None
    to_brokers: tuple[int, ...] = ()
    off_brokers: tuple[int, ...] = ()
    balance: bool = False
    last: tuple[int, ...] = ()
    rate: int | None = None
    batch: int = DEFAULT_BATCH


def plan_reassign(services: Services, texts: Sequence[str], request: Request, *, regex: bool = False) -> Plan[Reassignment]:
    """Plan to move, add or remove replicas of topics.

    :param texts: topics or globs, each with or without partitions; empty: every partition, those of internal topics too
    :raises UsageProblem: when nothing is asked for, or a broker does not exist
    :raises AuthorizationFailed: for every partition, while there are topics that may not be described
    :raises Refused: where data would not fit, and while any of the partitions is being moved already
    """
    if not any((request.factor, request.to_brokers, request.off_brokers, request.balance, request.last)):
        raise UsageProblem("nothing to change is named", hint="--replication-factor N, --to-brokers 1,2,3, --off-broker 4 or --balance")
    unseen = [] if texts else unseen_topics(services, request.off_brokers, "would stay where they are")
    everything = services.kafka.topics.describe()
    partitions = _partitions(everything.values())
    places = select_partitions(services, texts, regex=regex)[1] if texts else list(partitions)
    moving = services.kafka.replicas.moving()
    if busy := [place for place in places if place in moving]:
        raise Refused(
            f"{names_text(busy)} {'is' if len(busy) == 1 else 'are'} being moved already",
            hint="`kops topics reassignments` shows what is under way, and cancels it with --cancel",
        )
    now = placement_of(everything.values(), moving)
    chosen = {place: now[place] for place in places}
    aim = _aim(services, request, chosen)
    disks, warnings = disks_of(services, chosen)
    sizes = sizes_by_replica(one for some in disks.values() for one in some)
    new = plan_replicas(
        chosen,
        aim,
        {broker.id: broker.rack for broker in services.kafka.cluster().brokers},
        sizes={place: replica_size(place, sizes, partitions[place].leader) or 0 for place in places},
        others=[] if request.balance else [replicas for place, replicas in now.items() if place not in chosen],
        in_sync={place: partitions[place].in_sync_replicas for place in places},
    )
    moves = {place: (chosen[place], replicas) for place, replicas in new.items()}
    _refuse_leaderless(moves, partitions)
    warnings += unseen
    if request.factor:
        warnings += _too_few(services, {place.topic for place in places}, request.factor)
    limit = throttle.prepared(services, moves, request.rate) if request.rate and any(set(b) - set(a) for a, b in moves.values()) else None
    stay = len(places) - len(moves)
    return assemble(services, everything, moves, disks=disks, limit=limit, batch=request.batch, warnings=warnings, unchanged=stay)


def assemble(
    services: Services,
    topics: Mapping[str, Topic],
    moves: Moves,
    *,
    disks: Mapping[int, Sequence[LogDir]],
    limit: Throttle | None,
    batch: int,
    warnings: Sequence[str] = (),
    unchanged: int = 0,
    left: Iterable[TopicPartition] | None = None,
    now: Mapping[TopicPartition, Replicas] | None = None,
    moving: Mapping[TopicPartition, Moving] | None = None,
) -> Plan[Reassignment]:
    """Return the plan of some moves.

    :param left: those that are still to be done; None: all
    :param now: where they are, where that is not what they were before
    :param moving: what is under way
    """
    leaders = {place: partition.leader for place, partition in _partitions(topics.values()).items()}
    todo = {place: ((now or {}).get(place, moves[place][0]), moves[place][1]) for place in (moves if left is None else left)}
    flying = {place: found for place, found in (moving or {}).items() if place in todo}
    # A copy that goes on is still to be made; the replicas that one that is given up was to replace are still there.
    there = {place: one.origin if one.target == todo[place][1] else one.replicas for place, one in flying.items()}
    shares, unknown = shares_of({place: (there.get(place, before), after) for place, (before, after) in todo.items()}, leaders, disks)
    require_room(shares)
    sizes = sizes_by_replica(one for some in disks.values() for one in some)
    items = [
        _item(place, there.get(place, before), after, replica_size(place, sizes, leaders.get(place)))
        for place, (before, after) in sorted(todo.items())
    ]
    if limit is not None:
        items.append(Item(THROTTLE, "limit", None, f"{size_text(limit.rate)}/s until all is done", "then removed"))
    ids = {name: topics[name].topic_id for name in sorted({place.topic for place in moves})}
    receives = sum(share.receives for share in shares)
    of = f"{counted(len(todo), 'partition')} of {counted(len({place.topic for place in todo}), 'topic')}"
    said = f"reassign {of}, copying {size_text(receives)}"
    return Plan(
        operation=REASSIGN,
        summary=said if todo else REST if items else "nothing has to move",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=items,
        guard={
            "placement": {str(place): list(before) for place, (before, _) in todo.items()},
            "topic_ids": ids,
            "throttle": throttle.own_now(services, limit) if limit is not None and left is None else None,
        },
        arguments=Reassignment(moves, ids, batch, limit, tuple(one.as_json() for one in shares)),
        warnings=(*warnings, *_unknown_sizes(unknown), *_nearly_full(shares)),
        notes=(*_by_broker(shares), *([f"{counted(unchanged, 'partition')} stay as they are"] if unchanged and todo else [])),
    )


def look(services: Services, names: Iterable[str]) -> tuple[dict[str, Topic], dict[TopicPartition, Moving], dict[TopicPartition, Replicas]]:
    """Return topics that exist, what is under way, and where each of their partitions' replicas lie, or will."""
    topics = services.kafka.topics.existing(names)
    moving = services.kafka.replicas.moving()
    return topics, moving, placement_of(topics.values(), moving)


def disks_of(services: Services, places: Iterable[TopicPartition]) -> tuple[dict[int, tuple[LogDir, ...]], list[str]]:
    """Return the log directories of the brokers in service, with the replicas of some partitions, and what is not known."""
    found, warnings = {}, []
    brokers = [broker.id for broker in services.kafka.cluster().brokers]
    for broker, answer in services.kafka.log_dirs.describe_or_errors(brokers, places).items():
        if isinstance(answer, KopsError):
            warnings.append(f"what is on the disks of broker {broker} is not known: {answer.message}")
        else:
            found[broker] = answer
    return found, warnings


def unseen_topics(services: Services, brokers: Iterable[int], what: str) -> list[str]:
    """Refuse what is about every topic while some may not be described; return a warning where it is not known whether there are some.

    :param brokers: those that it is about, which may be out of service
    :param what: what becomes of topics that are not seen
    :raises AuthorizationFailed: naming them
    """
    hidden, unknown = services.kafka.hidden_topics(brokers, internal=True)
    if hidden:
        raise Right("DESCRIBE", f"topic {hidden[0]}").lacking(f"{names_text(hidden)} may not be described, and {what}")
    if unknown is None:
        return []
    return [f"topics that may not be described {what}, and whether there are such topics is not known: {reason(unknown)}"]


def _aim(services: Services, request: Request, chosen: Mapping[TopicPartition, Replicas]) -> Aim:
    in_service = {broker.id for broker in services.kafka.cluster().brokers}
    hint = f"in service: {', '.join(map(str, sorted(in_service)))}; see `kops brokers list`"
    if missing := sorted(set(request.to_brokers) - in_service):
        raise UsageProblem(f"no broker {missing[0]} is in service", hint=hint)
    holders = {broker for replicas in chosen.values() for broker in replicas}
    if missing := sorted({*request.off_brokers, *request.last} - in_service - holders):
        registered = answer_or_error(services.kafka.details.registered_brokers)  # before Kafka 4.0 without those that are down
        known = set() if isinstance(registered, KopsError) else {one.id for one in registered}
        if absent := [broker for broker in missing if broker not in known]:
            raise UsageProblem(f"no broker {absent[0]} is in service, and no partition has a replica there", hint=hint)
    allowed = frozenset(request.to_brokers or in_service) - frozenset(request.off_brokers)
    if request.last and not (request.to_brokers or request.off_brokers):
        allowed |= holders  # only the order of replicas changes
    return Aim(allowed, request.factor, request.balance, frozenset(request.last))


def _partitions(topics: Iterable[Topic]) -> dict[TopicPartition, Partition]:
    return {place: partition for topic in topics for place, partition in zip(topic.places, topic.partitions, strict=True)}


def _refuse_leaderless(moves: Moves, partitions: Mapping[TopicPartition, Partition]) -> None:
    stuck = [place for place, (before, after) in moves.items() if set(after) - set(before) and partitions[place].leader is None]
    if stuck:
        raise Refused(f"{names_text(stuck)} has no leader, so there is nothing to copy from", hint="`kops cluster health` says why")


def _too_few(services: Services, names: Iterable[str], factor: int) -> list[str]:
    found = services.kafka.topics.settings(sorted(names))
    few = [name for name, settings in found.items() if MIN_IN_SYNC in settings and int(settings[MIN_IN_SYNC].value or 1) > factor]
    return [f"{names_text(few)}: {MIN_IN_SYNC} is more than {factor} replicas, so nothing can be written with acks=all"] if few else []


def _item(place: TopicPartition, before: Replicas, after: Replicas, size: int | None) -> Item:
    added, removed = set(after) - set(before), set(before) - set(after)
    action = "move" if added and removed else "add replicas" if added else "remove replicas" if removed else "reorder"
    copied = "an unknown size" if size is None else size_text(size * len(added))
    return Item(str(place), action, list(before), list(after), f"copies {copied}" if added else "")


def _unknown_sizes(unknown: Sequence[TopicPartition]) -> list[str]:
    return [f"how large {names_text(unknown)} is, is not known: whether it fits was not checked"] if unknown else []


def _nearly_full(shares: Iterable[Share]) -> list[str]:
    texts = []
    for share in shares:
        if share.receives and share.usable is None:
            texts.append(f"broker {share.broker} does not say how much room it has: whether the copies fit was not checked")
        elif share.receives and share.usable is not None and share.total and share.usable - share.receives < share.total / 10:
            texts.append(f"broker {share.broker} has less than a tenth of its disk free once the copies are there")
        if text := crowded(share):
            texts.append(text)
    return texts


def _by_broker(shares: Sequence[Share]) -> list[str]:
    shown = [share for share in shares if share.receives or share.frees]
    more = [f"and {len(shown) - _SHOWN_BROKERS} more brokers; -o json has all"] if len(shown) > _SHOWN_BROKERS else []
    return [*(share.text for share in shown[:_SHOWN_BROKERS]), *more]
