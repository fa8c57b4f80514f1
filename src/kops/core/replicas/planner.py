"""Chooses the replicas of partitions: the least data moved that reaches the aim, racks kept apart, brokers even.

Brokers are a graph: a replica may go from one to another if its partition has none there, and its replicas then lie in no fewer racks.
Counts are evened out along paths in that graph, from brokers that have two or more replicas more than where the path ends. When there is no
such path, no other placement is more even (a convex flow has no cheaper one without a negative cycle). Each step takes the replica whose
move adds the fewest bytes to what has to be copied.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from kops.core.errors import Refused
from kops.core.models import TopicPartition

Replicas = tuple[int, ...]
"""Brokers; the first is the preferred leader."""
Placement = Mapping[TopicPartition, Replicas]


@dataclass(frozen=True)
class Aim:
    """What a reassignment is for.

    :param allowed: the brokers that may have replicas afterwards
    :param factor: replicas of each partition; None: as many as now
    :param balance: even out replicas and leaders of all brokers, and repair racks; otherwise only what must move is moved
    :param last: brokers that are to be the last choice as leaders
    """

    allowed: frozenset[int]
    factor: int | None = None
    balance: bool = False
    last: frozenset[int] = frozenset()


@dataclass
class Board:
    """Replicas while they are planned.

    :param racks: the rack of each broker; a broker without one counts as a rack of its own
    :param sizes: bytes of one replica, by partition
    :param before: the replicas that are there: copying to these costs nothing
    """

    racks: Mapping[int, str | None]
    sizes: Mapping[TopicPartition, int]
    before: Placement
    in_sync: Mapping[TopicPartition, Collection[int]] = field(default_factory=dict)
    now: dict[TopicPartition, list[int]] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)

    def rack(self, broker: int) -> str | int:
        return self.racks.get(broker) or broker

    def cost(self, place: TopicPartition, source: int, target: int) -> int:
        """Return the bytes that moving a replica adds to what is copied; negative if it goes back to where it was."""
        before = self.before[place]
        return self.sizes.get(place, 0) * ((target not in before) - (source not in before))

    def move(self, place: TopicPartition, source: int, target: int) -> None:
        replicas = self.now[place]
        replicas[replicas.index(source)] = target
        self.counts[source] -= 1
        self.counts[target] += 1

    def spread(self, replicas: Iterable[int]) -> int:
        return len({self.rack(broker) for broker in replicas})

    def may_move(self, place: TopicPartition, source: int, target: int) -> bool:
        replicas = self.now[place]
        if source not in replicas or target in replicas:
            return False
        others = {self.rack(broker) for broker in replicas if broker != source}
        return self.rack(target) not in others or self.rack(source) in others


def plan_replicas(
    chosen: Placement,
    aim: Aim,
    racks: Mapping[int, str | None],
    *,
    sizes: Mapping[TopicPartition, int] | None = None,
    others: Iterable[Replicas] = (),
    in_sync: Mapping[TopicPartition, Collection[int]] | None = None,
) -> dict[TopicPartition, Replicas]:
    """Return the replicas of the partitions that have to change.

    :param chosen: the partitions that may change
    :param racks: by broker
    :param others: replicas of other partitions that count for how full a broker is
    :param in_sync: brokers in sync, by partition; not known of others
    :raises Refused: when there are fewer brokers than a partition needs
    """
    board = Board(racks, sizes or {}, chosen, in_sync or {}, counts=Counter(broker for replicas in others for broker in replicas))
    board.counts.update(dict.fromkeys(aim.allowed, 0))
    _require_brokers(chosen, aim)
    for place, replicas in chosen.items():
        board.now[place] = [broker for broker in replicas if broker in aim.allowed]
        board.counts.update(board.now[place])
    for place in sorted(chosen, key=lambda place: (-board.sizes.get(place, 0), place)):
        _resize(board, place, aim.factor or len(chosen[place]), aim.allowed)
    if aim.balance:
        for place in chosen:
            _repair_racks(board, place, aim.allowed)
        _even_out_replicas(board, aim.allowed)
    _order(board, aim)
    return {place: tuple(replicas) for place, replicas in board.now.items() if tuple(replicas) != chosen[place]}


def _require_brokers(chosen: Placement, aim: Aim) -> None:
    for place, replicas in chosen.items():
        wanted = aim.factor or len(replicas)
        if wanted > len(aim.allowed):
            some = ", ".join(map(str, sorted(aim.allowed))) or "none"
            raise Refused(
                f"{place} is to have {wanted} replicas, and only {len(aim.allowed)} brokers may have them ({some})",
                hint="name more brokers, or a smaller --replication-factor",
            )


def _resize(board: Board, place: TopicPartition, wanted: int, allowed: Collection[int]) -> None:
    """Remove replicas that are too many, those out of sync first, and add those that are missing."""
    replicas, in_sync = board.now[place], board.in_sync.get(place, board.now[place])
    while len(replicas) > wanted:  # never the first: it is the preferred leader
        gone = max(
            replicas[1:],
            key=lambda one: (one not in in_sync, board.spread(set(replicas) - {one}), board.counts[one], replicas.index(one)),
        )
        replicas.remove(gone)
        board.counts[gone] -= 1
    while len(replicas) < wanted:
        used = {board.rack(broker) for broker in replicas}
        free = (broker for broker in allowed if broker not in replicas)
        added = min(free, key=lambda one: (board.rack(one) in used, one not in board.before[place], board.counts[one], one))
        replicas.append(added)
        board.counts[added] += 1


def _repair_racks(board: Board, place: TopicPartition, allowed: Collection[int]) -> None:
    replicas = board.now[place]
    reach = min(len(replicas), board.spread(allowed))
    while board.spread(replicas) < reach:
        used = Counter(board.rack(broker) for broker in replicas)
        crowded = [broker for broker in replicas if used[board.rack(broker)] > 1]
        free = [broker for broker in allowed if board.rack(broker) not in used]
        source = max(crowded, key=lambda one: (one not in board.before[place], board.counts[one], one))
        board.move(place, source, min(free, key=lambda one: (one not in board.before[place], board.counts[one], one)))


Edge = tuple[int, int]
Entry = tuple[int, TopicPartition]


class _Steps:
    """The cheapest step from each broker to each other one; what is no longer possible is dropped when it comes up.

    :param of: yields the steps that a partition allows now, with what each costs
    :param carry_out: makes a step
    """

    def __init__(
        self,
        places: Iterable[TopicPartition],
        of: Callable[[TopicPartition], Iterable[tuple[Edge, int]]],
        carry_out: Callable[[TopicPartition, int, int], None],
    ) -> None:
        self._of, self._carry_out = of, carry_out
        self._heaps: dict[Edge, list[Entry]] = {}
        self._costs: dict[TopicPartition, dict[Edge, int]] = {}
        for place in places:
            self._costs[place] = dict(of(place))
            for edge, cost in self._costs[place].items():
                self._heaps.setdefault(edge, []).append((cost, place))
        for heap in self._heaps.values():
            heapify(heap)

    def possible(self, source: int, target: int) -> bool:
        heap = self._heaps.get((source, target), [])
        while heap and self._costs[heap[0][1]].get((source, target)) != heap[0][0]:
            heappop(heap)
        return bool(heap)

    def take(self, source: int, target: int) -> bool:
        if not self.possible(source, target):
            return False
        _, place = self._heaps[source, target][0]
        self._carry_out(place, source, target)
        self._costs[place] = dict(self._of(place))
        for edge, cost in self._costs[place].items():
            heappush(self._heaps.setdefault(edge, []), (cost, place))
        return True


def _even_out_replicas(board: Board, allowed: Collection[int]) -> None:
    targets = sorted(allowed)

    def steps(place: TopicPartition) -> Iterator[tuple[Edge, int]]:
        for source in board.now[place]:
            for target in targets:
                if board.may_move(place, source, target):
                    yield (source, target), board.cost(place, source, target)

    _even_out(board.counts, allowed, _Steps(board.now, steps, board.move))


def _even_out(counts: Counter[int], brokers: Collection[int], steps: _Steps) -> None:
    """Move one at a time along the shortest path from a fuller broker to one that has two or more fewer, until there is none."""
    for _ in range(sum(counts.values()) + 1):  # each path makes it more even; one that breaks off halfway must not go on forever
        for source in sorted(brokers, key=lambda one: (-counts[one], one)):
            path = _path(source, counts, brokers, steps)
            if path and all(steps.take(one, other) for one, other in reversed(path)):
                break
        else:
            return


def _path(source: int, counts: Counter[int], brokers: Collection[int], steps: _Steps) -> list[Edge] | None:
    """Return the shortest path to a broker that is emptier by two or more, to the emptiest at that distance; None if there is none."""
    came_from: dict[int, int] = {source: source}
    level = deque([source])
    while level:
        following: deque[int] = deque()
        ends = []
        for one in level:
            for other in sorted(brokers, key=lambda each: (counts[each], each)):
                if other not in came_from and steps.possible(one, other):
                    came_from[other] = one
                    following.append(other)
                    if counts[source] - counts[other] > 1:
                        ends.append(other)
        if ends:
            path, at = [], min(ends, key=lambda each: (counts[each], each))
            while at != source:
                path.append((came_from[at], at))
                at = came_from[at]
            return path[::-1]
        level = following
    return None


def _order(board: Board, aim: Aim) -> None:
    """Put the preferred leader first: it stays where it is, unless it has left, is to be the last choice, or leaders are evened out."""
    leads: Counter[int] = Counter(dict.fromkeys(aim.allowed, 0))
    open_places = []
    for place, replicas in board.now.items():
        first = board.before[place][0] if board.before[place] else None
        stays = first in replicas and first not in aim.last
        if stays:
            replicas.remove(first)  # type: ignore[arg-type]
            replicas.insert(0, first)  # type: ignore[arg-type]
            leads[replicas[0]] += 1
        else:
            open_places.append(place)
        if aim.last:
            replicas.sort(key=lambda one: one in aim.last)
    for place in open_places:
        _lead(board, place, min((one for one in board.now[place] if one not in aim.last), key=lambda one: (leads[one], one), default=None))
        leads[board.now[place][0]] += 1
    candidates = sorted(aim.allowed - aim.last)

    def handovers(place: TopicPartition) -> Iterator[tuple[Edge, int]]:
        first, *rest = board.now[place]
        yield from (((first, other), 0) for other in rest if other in candidates)

    def hand_over(place: TopicPartition, source: int, target: int) -> None:
        _lead(board, place, target)
        leads[source] -= 1
        leads[target] += 1

    _even_out(leads, candidates, _Steps(board.now if aim.balance else open_places, handovers, hand_over))


def _lead(board: Board, place: TopicPartition, broker: int | None) -> None:
    replicas = board.now[place]
    if broker is not None:
        replicas.remove(broker)
        replicas.insert(0, broker)
