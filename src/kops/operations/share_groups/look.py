"""`kops share-groups lag`: the start offset of each partition, and what is not processed after it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from kops.core.errors import KopsError, NotFound, Refused
from kops.core.models import Bounds, Group, ShareOffset, TopicPartition
from kops.core.selection import names_matching
from kops.operations.groups.matching import find_group
from kops.operations.services import Services


def lag_rows(services: Services, patterns: Sequence[str], problems: dict[str, KopsError]) -> list[dict[str, Any]]:
    """Return a row per partition of share groups.

    ``lag`` counts what is not processed; ``processed`` what is, after the start offset: acknowledged, rejected or given up. Both are None
    where the brokers do not report the lag (before Kafka 4.2), and before a member has fetched. How many records members hold is in no
    answer of the protocol.

    :param problems: receives why a group is not known
    :raises NotFound: for a plain name that is not a share group
    """
    services.kafka.groups.require_share_groups()
    names = [one.group_id for one in services.kafka.groups.listed() if one.type == "share"]
    chosen = names_matching(patterns, names, regex=False, what="share group")
    answers = services.kafka.groups.share_offsets(chosen) if chosen else {}
    found = {name: answer for name, answer in answers.items() if not isinstance(answer, KopsError)}
    problems.update({name: answer for name, answer in answers.items() if isinstance(answer, KopsError)})
    bounds = services.kafka.offsets.bounds_or_errors({place for offsets in found.values() for place in offsets})
    return [_row(name, place, one, bounds[place]) for name, offsets in found.items() for place, one in sorted(offsets.items())]


def share_group(services: Services, group_id: str) -> Group:
    """Return a share group.

    :raises NotFound: when there is none of this name
    :raises Refused: when the group is of another type
    """
    group = find_group(services, group_id)
    if group.type != "share":
        raise Refused(f"{group_id} is a {group.type} group", hint="`kops offsets` and `kops groups` are for those", type=group.type)
    return group


def offsets_of(services: Services, group_id: str) -> dict[TopicPartition, ShareOffset]:
    """Return where a share group is.

    :raises KopsError: when its coordinator does not answer
    """
    answer = services.kafka.groups.share_offsets([group_id]).get(group_id)
    if answer is None:
        raise NotFound(f"there is no share group {group_id}", hint="`kops groups list --type share` shows them")
    if isinstance(answer, KopsError):
        raise answer
    return answer


def processed_after(services: Services, group_id: str, places: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
    """Return how many records were processed after the start offsets, as ``lag_rows`` counts them."""
    if not places:
        return {}
    bounds, offsets = services.kafka.offsets.bounds_or_errors(set(places)), offsets_of(services, group_id)
    return {place: _processed(offsets[place], bounds[place]) for place in places}


def _processed(one: ShareOffset, ends: Bounds | KopsError) -> int | None:
    if one.start is None or one.lag is None or isinstance(ends, KopsError):
        return None
    return max(0, ends.log_end_offset - one.start - one.lag)


def _row(group: str, place: TopicPartition, one: ShareOffset, ends: Bounds | KopsError) -> dict[str, Any]:
    return {
        "group": group,
        "topic": place.topic,
        "partition": place.partition,
        "start_offset": one.start,
        "log_end_offset": ends.log_end_offset if isinstance(ends, Bounds) else None,
        "lag": one.lag,
        "processed": _processed(one, ends),
        "note": ends.message if isinstance(ends, KopsError) else "no member has fetched yet" if one.start is None else "",
    }
