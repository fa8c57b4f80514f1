"""The throttle of a reassignment: set before anything is copied, and removed at the end, so that what was there before applies again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from kops.core.errors import Refused
from kops.core.models import Setting
from kops.core.replicas.reassignment import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    RATES,
    THROTTLED,
    Own,
    Throttle,
    joined,
    throttled_brokers,
    throttled_topics,
    without,
)
from kops.core.replicas.space import Moves
from kops.core.settings import BROKER, Settings, own_settings
from kops.operations.services import Services
from kops.operations.settings.change import describe


def prepared(services: Services, moves: Moves, rate: int) -> Throttle:
    """Return a throttle for some moves, with the settings as they are before it.

    :raises Refused: while another throttled reassignment is under way: when it ends it removes its rates, or finds ours
    """
    found = Throttle(rate, *_own(services, throttled_topics(moves), map(str, throttled_brokers(moves))))
    limited = [broker for broker, own in found.brokers.items() if any(own.values())]
    if limited and services.kafka.replicas.moving():
        raise Refused(
            f"another throttled reassignment is under way: broker {limited[0]} has a rate already",
            hint="`kops topics reassignments` shows it; wait until it has ended, or leave out --throttle to share its rate",
        )
    return found


def own_now(services: Services, throttle: Throttle) -> dict[str, object]:
    """Return the settings that a throttle changes, as they are now, in the form of a guard."""
    topics, brokers = _own(services, throttle.topics, throttle.brokers)
    return {"topics": topics, "brokers": brokers}


def put_on(services: Services, throttle: Throttle, moves: Moves) -> None:
    """Set the rates, then name the replicas.

    :raises KopsError: when a broker refuses
    """
    now, _ = _own(services, throttle.topics, ())
    ours = throttled_topics(moves)
    names = {
        topic: {name: joined(now[topic][name], ours.get(topic, {}).get(name, "")) for name in THROTTLED}
        for topic in throttle.topics
        if topic in now
    }
    rates = dict.fromkeys(throttle.brokers, dict.fromkeys(RATES, str(throttle.rate)))
    _alter(services, rates, names, rates_first=True)


def taken_off(services: Services, throttle: Throttle, moves: Moves) -> list[str]:
    """Restore the settings as they were before; return a sentence for each that somebody else has changed, which stays.

    :raises KopsError: when a broker refuses
    """
    rates, names, strayed = _left(services, throttle, moves)
    _alter(services, rates, names, rates_first=False)
    return strayed


def is_left(services: Services, throttle: Throttle, moves: Moves) -> bool:
    """Whether anything of the throttle is still set."""
    rates, names, _ = _left(services, throttle, moves)
    return bool(rates or names)


def _left(services: Services, throttle: Throttle, moves: Moves) -> tuple[dict[str, Settings], dict[str, Settings], list[str]]:
    """Return the settings of brokers and topics that have to change to be as before, and what others have changed."""
    topics, brokers = _own(services, throttle.topics, throttle.brokers)
    rates: dict[str, Settings] = {}
    strayed = []
    for broker, own in brokers.items():
        before = throttle.brokers[broker]
        changed = {name: before[name] for name in RATES if own[name] == str(throttle.rate) != before[name]}
        strayed += [
            f"broker {broker} keeps {name}={own[name]}: changed since"
            for name in RATES
            if own[name] not in (str(throttle.rate), before[name])
        ]
        rates |= {broker: changed} if changed else {}
    names: dict[str, Settings] = {}
    for topic, own in topics.items():
        partitions = {place.partition for place in moves if place.topic == topic}
        after = {name: without(own[name], partitions, throttle.topics[topic][name]) for name in THROTTLED}
        if changed := {name: value for name, value in after.items() if value != own[name]}:
            names[topic] = changed
    return rates, names, strayed


def _own(services: Services, topics: Iterable[str], brokers: Iterable[str]) -> tuple[dict[str, Own], dict[str, Own]]:
    """Return own settings of topics that exist and of brokers in service."""
    in_service = {str(broker.id) for broker in services.kafka.cluster().brokers}
    of_topics = services.kafka.topics.settings(topics, missing_ok=True)
    of_brokers = describe(services, BROKER, [broker for broker in brokers if broker in in_service])
    return (
        {name: _only(settings, (LEADER_REPLICAS, FOLLOWER_REPLICAS), "topic") for name, settings in of_topics.items()},
        {name: _only(settings, RATES, BROKER) for name, settings in of_brokers.items()},
    )


def _only(settings: Mapping[str, Setting], names: Iterable[str], source: str) -> Own:
    own = own_settings(settings, source)
    return {name: own.get(name) for name in names}


def _alter(services: Services, rates: Mapping[str, Settings], names: Mapping[str, Settings], *, rates_first: bool) -> None:
    requests = [partial(services.kafka.settings.alter, BROKER, rates), partial(services.kafka.topics.alter, names)]
    for request in requests if rates_first else requests[::-1]:
        for error in request().values():
            if error is not None:
                raise error
