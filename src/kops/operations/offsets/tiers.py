"""Tiered storage (KIP-405): which offsets of a topic lie in remote storage, and which in the local log of the leader."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kops.core.errors import BrokersTooOld, KopsError, answer_or_error
from kops.core.findings import counted, partitions_text
from kops.core.models import Bounds, Setting, TopicPartition, value_of
from kops.gateways.kafka.offsets import EARLIEST_LOCAL, LATEST_TIERED, FoundOffset
from kops.operations.services import Services

REMOTE = "remote.storage.enable"
COLUMNS = {EARLIEST_LOCAL: "earliest_local_offset", LATEST_TIERED: "latest_tiered_offset"}
Found = Mapping[TopicPartition, "FoundOffset | KopsError | None"]


def tier_columns(
    services: Services, places: Iterable[TopicPartition], settings: Mapping[str, Mapping[str, Setting] | None]
) -> tuple[dict[TopicPartition, dict[str, Any]], list[str]]:
    """Return the columns of partitions of topics with remote storage, and why some are not known.

    :param settings: by topic; None for those that may not be seen, where the leaders are asked all the same
    """
    asked = [place for place in places if _may_be_remote(settings.get(place.topic, {}))]
    rows: dict[TopicPartition, dict[str, Any]] = {place: {} for place in asked}
    problems: list[str] = []
    for name, column in COLUMNS.items() if asked else ():
        found, trouble = _ends(services, asked, name, settings)
        problems += trouble
        for place in asked:
            rows[place][column] = one.offset if isinstance(one := found.get(place), FoundOffset) else None
    return rows, problems


def fetched_from_remote(
    services: Services,
    positions: Callable[[], Iterable[tuple[TopicPartition, int]]],
    bounds: Mapping[TopicPartition, Any],
) -> tuple[str, ...]:
    """Return how many offsets consumers will fetch from remote storage, in a sentence; empty if none.

    :param positions: the offsets that are to be committed, as often as groups will read from there
    :param bounds: of the partitions; those without are left out
    """

    def read(topics: Collection[str] | None = None) -> Iterable[tuple[TopicPartition, int]]:
        for place, offset in positions():
            log = bounds.get(place) if topics is None or place.topic in topics else None
            if isinstance(log, Bounds) and offset < log.log_end_offset:
                yield place, max(offset, log.log_start_offset)

    names = {place.topic for place, _ in read()}
    if not names:
        return ()
    answers = services.kafka.topics.settings_or_errors(sorted(names))
    settings = {name: None if isinstance(one, KopsError) else one for name, one in answers.items()}
    remote = {name for name in names if _may_be_remote(settings.get(name, {}))}
    if not remote:
        return ()
    moves = list(read(remote))
    found, problems = _ends(services, {place for place, _ in moves}, EARLIEST_LOCAL, settings)
    missing = {
        (place, offset): end.offset - offset
        for place, offset in moves
        if isinstance(end := found.get(place), FoundOffset) and offset < end.offset
    }
    count = sum(missing[move] for move in moves if move in missing)
    where = partitions_text({place for place, _ in missing})
    said = [f"fetches {counted(count, 'offset')} from remote storage: the local logs no longer have them ({where})"] if missing else []
    return (*said, *(f"how much is fetched from remote storage is not known: {problem}" for problem in problems))


def _may_be_remote(settings: Mapping[str, Setting] | None) -> bool:
    return settings is None or value_of(settings, REMOTE) == "true"


def _ends(
    services: Services, places: Iterable[TopicPartition], name: str, settings: Mapping[str, Mapping[str, Setting] | None]
) -> tuple[Found, list[str]]:
    """Return what the leaders answer, and a sentence for each reason why some do not."""
    wanted = sorted(places)
    found = answer_or_error(lambda: services.kafka.offsets.by_spec(wanted, name))
    if isinstance(found, KopsError):
        # Where the settings may not be seen, brokers that do not know the request have no remote storage either.
        hidden = isinstance(found, BrokersTooOld) and all(settings.get(place.topic, {}) is None for place in wanted)
        return {}, [] if hidden else [found.message]
    reasons: dict[str, list[TopicPartition]] = {}
    for place, one in found.items():
        if isinstance(one, KopsError):
            reasons.setdefault(one.message, []).append(place)
    return found, [f"{partitions_text(some)}: {message}" for message, some in reasons.items()]
