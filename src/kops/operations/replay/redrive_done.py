"""Which dead letters were sent back: the committed offsets of a group, whose metadata holds what the offset alone cannot say.

The offset is that of the first dead letter that was not sent back; the metadata has the set of those after it that were (``done``),
and what a redrive that is under way has set out to send (``claim``). How far that one is, its own groups say, in the transactions of its
records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kops.core.errors import OperationFailed, Refused
from kops.core.intervals import Intervals, below, intervals_of, intervals_text, joined
from kops.core.models import Committed, TopicPartition
from kops.operations.replay.progress import progress_of
from kops.operations.services import Services

LARGEST_NOTE = 4096
"""Bytes of metadata that brokers take (``offset.metadata.max.bytes``)."""


@dataclass(frozen=True)
class Done:
    """What of a partition was sent back.

    :param done: from 0 on, where the offset says so
    :param claim: what the redrive of that name sends
    """

    done: Intervals = ()
    claim: Intervals = ()
    replay: str = ""

    def committed(self) -> Committed:
        """Return it as it is committed."""
        first = self.done[0][1] if self.done and self.done[0][0] == 0 else 0
        later = tuple(each for each in self.done if each[0] > first)
        note = {"done": intervals_text(later), "claim": intervals_text(self.claim), "replay": self.replay}
        return Committed(first, json.dumps({name: text for name, text in note.items() if text}))

    def folded(self, reached: int | None) -> Done:
        """Return it with what the redrive has sent, up to where it came; None when it was not begun."""
        return Done(joined(self.done, below(self.claim, reached)) if reached is not None else self.done)


def group_of_topic(topic: str) -> str:
    """Return the group that says which dead letters of a topic were sent back."""
    return f"kops-redrive-{topic}"


def read_done(services: Services, topic: str, partitions: Iterable[int]) -> dict[int, Done]:
    """Return what was sent back of some partitions.

    :raises Refused: when somebody else has committed offsets as that group
    """
    group = group_of_topic(topic)
    found = services.kafka.groups.committed([group], stable=True).get(group, {})
    return {number: _done_of(group, found.get(TopicPartition(topic, number))) for number in partitions}


def write_done(services: Services, topic: str, now: Mapping[int, Done]) -> None:
    """Commit what was sent back.

    :raises OperationFailed: when the brokers do not take it
    """
    commits = {TopicPartition(topic, number): done.committed() for number, done in now.items()}
    errors = [error for error in services.kafka.groups.commit(group_of_topic(topic), commits).values() if error is not None]
    if errors:
        raise OperationFailed(f"cannot note which dead letters of {topic} were sent back: {errors[0].message}", hint=errors[0].hint)


def fits(done: Done) -> bool:
    """Tell whether brokers take it."""
    return len((done.committed().metadata or "").encode()) <= LARGEST_NOTE


def folded(services: Services, known: Mapping[int, Done]) -> dict[int, Done]:
    """Return what was sent back, with what redrives under way have sent so far."""
    reached: dict[tuple[str, int], int] = {}
    for name in {one.replay for one in known.values() if one.replay}:
        partitions = [number for number, one in known.items() if one.replay == name]
        reached |= {(name, number): sent.offset for number, sent in progress_of(services, name, partitions).items()}
    return {number: one.folded(reached.get((one.replay, number))) for number, one in known.items()}


def refuse_under_way(topic: str, known: Mapping[int, Done]) -> None:
    """Refuse while another redrive has dead letters to send that it has not finished.

    :raises Refused: naming it
    """
    names = sorted({one.replay for one in known.values() if one.replay})
    if names:
        raise Refused(
            f"a redrive of {topic} runs or was killed ({names[0]}): what it sends is not known yet",
            hint="`kops journal list --unfinished` names it, `kops replay resume ID` finishes it; if it is gone for good, --take-over",
            replay=names[0],
        )


def done_json(known: Mapping[int, Done]) -> dict[str, Any]:
    """Return it as JSON, to be compared."""
    found = {number: done.committed() for number, done in sorted(known.items())}
    return {str(number): [one.offset, one.metadata] for number, one in found.items()}


def _done_of(group: str, found: Committed | None) -> Done:
    if found is None:
        return Done()
    try:
        body = json.loads(found.metadata or "{}")
        later, claim = (intervals_of(body.get(name, "")) for name in ("done", "claim"))
        return Done(joined([(0, found.offset)], later), claim, str(body.get("replay", "")))
    except (ValueError, AttributeError) as broken:
        raise Refused(
            f"group {group} has committed something else than which dead letters were sent back",
            hint=f"if nobody needs it: `kops offsets show {group}`, then `kops groups delete {group}`",
        ) from broken
