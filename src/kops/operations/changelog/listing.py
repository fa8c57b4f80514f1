"""``changelog list``: an application's changelogs, with what a client can know about how they are kept. Nothing joins a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.cluster.models import LogDir, sizes_by_replica
from kops.core.errors import KopsError, NotFound
from kops.core.models import Setting, TopicPartition
from kops.core.settings import own_settings, same_value
from kops.core.streams.topics import ADDED_MS, REPARTITION_SETTINGS, doubts, is_internal_name, is_named_of, owner_of, store_of
from kops.core.topics.settings import POLICY, RETENTION, readable_value
from kops.formats.streams.detection import Guess
from kops.operations.changelog.detect import detect_by, samples
from kops.operations.changelog.rows import NotedRows
from kops.operations.changelog.target import FrozenChangelog, frozen
from kops.operations.groups.matching import similar
from kops.operations.services import Services

LAG = "min.compaction.lag.ms"
_TIME = {"message.timestamp.type": "CreateTime"}
_COMPACTED = {POLICY: "compact", **_TIME}
_WINDOWED = {POLICY: "compact,delete", RETENTION: f">={ADDED_MS}", **_TIME}
_JOIN = {**_WINDOWED, POLICY: "delete|compact,delete"}
"""``WindowStoreBuilder`` that retains duplicates: each record has its own key, so compaction removes nothing and does no harm."""
_VERSIONED = {POLICY: "compact", LAG: f">={ADDED_MS}", **_TIME}
_BY_TYPE: Mapping[str, Mapping[str, str]] = {
    "window": _WINDOWED,
    "session": _WINDOWED,
    "join": _JOIN,
    "versioned": _VERSIONED,
    "repartition": REPARTITION_SETTINGS,
    "grouped-table": REPARTITION_SETTINGS,
    "subscription-registration": REPARTITION_SETTINGS,
    "subscription-response": REPARTITION_SETTINGS,
}


@dataclass(frozen=True)
class SettingDifference:
    """A setting that Kafka Streams would have set to another value, or not at all.

    :param expected: the value, ``>=`` before the least, ``|`` between several; None: it sets none, and the topic has one of its own
    """

    name: str
    value: str | None
    expected: str | None

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "expected": self.expected}

    def __str__(self) -> str:
        has = readable_value(self.name, self.value) if self.value is not None else "not known"
        if self.expected is None:
            return f"{self.name} is set to {has}; Kafka Streams sets none"
        least = self.expected.removeprefix(">=")
        wanted = readable_value(self.name, least.replace("|", " or "))
        return f"{self.name} is {has}; Kafka Streams sets {f'at least {wanted}' if least != self.expected else wanted}"


def differences(store_type: str, settings: Mapping[str, Setting]) -> list[SettingDifference]:
    expected = _BY_TYPE.get(store_type, _COMPACTED)
    found = []
    for name, wanted in expected.items():
        setting = settings.get(name)
        value = setting.value if setting is not None else None
        if not _fits(name, value, wanted):
            found.append(SettingDifference(name, value, wanted))
    added = [SettingDifference(name, value, None) for name, value in own_settings(settings).items() if name not in expected]
    return [*found, *added]


def _fits(name: str, value: str | None, wanted: str) -> bool:
    if wanted.startswith(">="):
        return value is not None and value.lstrip("-").isdigit() and int(value) >= int(wanted.removeprefix(">="))
    return any(same_value(name, value, one) for one in wanted.split("|"))


OFF, EMPTY, COMPACTED, CLOSED, ACTIVE = "off", "empty", "compacted", "no-sign", "active"
"""How a topic is cleaned, as far as a client sees it: not by compaction; there are no records; the first record is above the log start;
there are closed segments and the first record is at the log start; all may be in the active segment, which is never cleaned.
"""


def list_changelogs(services: Services, application: str | None) -> NotedRows:
    """Return the internal topics of an application, or of all applications when None: a row per topic.

    :raises NotFound: when no topic is named as an internal topic of the application
    """
    names = [name for name in services.kafka.topics.names() if is_internal_name(name)]
    ids, notes = _group_ids(services)
    if application is None:
        owners = {name: owner_of(name, ids) for name in names}
    else:
        owners, about = _owned(application, names, ids)
        notes += about
    targets = frozen(services, sorted(owners))
    found = _Facts.of(services, targets)
    rows = [_row(target, owners[name], found) for name, target in targets.items()]
    notes += found.problems
    for row in rows:
        notes += [f"note: {row['topic']}, read as {row['type']}: {SettingDifference(**each)}" for each in row["differences"]]
    rows.sort(key=lambda row: (row["application"] is None, row["application"] or "", row["kind"] != "changelog", row["topic"]))
    return NotedRows(rows, notes)


def _group_ids(services: Services) -> tuple[list[str], list[str]]:
    try:
        return list(services.kafka.groups.ids()), []
    except KopsError as problem:
        return [], [f"warning: groups are not known, so applications with similar names may be mixed up: {problem.message}"]


def _owned(application: str, names: Sequence[str], ids: Iterable[str]) -> tuple[dict[str, str | None], list[str]]:
    """Return the topics of one application, and other applications whose names begin with its name."""
    named = [name for name in names if is_named_of(name, application)]
    own = [name for name in named if owner_of(name, {application, *ids}) == application]
    if not own:
        known = {owner for name in names if (owner := owner_of(name, ids))}
        near = similar(application, sorted(known))
        hint = f"did you mean {' or '.join(near)}?" if near else "`kops changelog list --all` shows every internal topic"
        raise NotFound(f"there is no internal topic of an application {application}", hint=hint, application=application)
    notes = []
    if len(own) < len(named):
        others = sorted({str(owner_of(name, ids)) for name in named if name not in own})
        notes.append(
            f"note: left out because they are of {', '.join(others)}: {len(named) - len(own)} topics that begin with {application}- too"
        )
    notes += [f"note: {doubt.topic} {doubt.reason}: it may be that application's, which has no group" for doubt in doubts(application, own)]
    return dict.fromkeys(own, application), notes


@dataclass(frozen=True)
class _Facts:
    """What the cluster reports about some topics besides their settings and bounds.

    :param guesses: types of stores, by topic
    :param first: offset of the first record that still exists; None where there is none
    :param sizes: bytes of the largest replica, by partition
    """

    guesses: Mapping[str, Guess]
    first: Mapping[TopicPartition, int | None]
    sizes: Mapping[TopicPartition, int]
    problems: list[str]

    @classmethod
    def of(cls, services: Services, targets: Mapping[str, FrozenChangelog]) -> _Facts:
        found = samples(services, dict(targets))
        guesses = {name: detect_by(target, found.get(name, []), None).guess for name, target in targets.items()}
        places = [place for target in targets.values() for place in target.ranges]
        first = services.kafka.offsets.at_time(places, 0) if places else {}
        sizes, problems = _sizes(services, places)
        return cls(guesses, first, sizes, problems)


def _sizes(services: Services, places: Sequence[TopicPartition]) -> tuple[dict[TopicPartition, int], list[str]]:
    log_dirs: list[LogDir] = []
    problems = []
    brokers = [broker.id for broker in services.kafka.cluster().brokers]
    for answer in services.kafka.log_dirs.describe_or_errors(brokers, places).values() if places else ():
        if isinstance(answer, KopsError):
            problems.append(f"warning: sizes are not whole: {answer.message}")
        else:
            log_dirs += answer
    return {place: max(replicas.values()) for place, replicas in sizes_by_replica(log_dirs).items() if replicas}, problems


def _row(target: FrozenChangelog, owner: str | None, found: _Facts) -> dict[str, Any]:
    guess = found.guesses[target.topic]
    sizes = [found.sizes.get(place) for place in target.ranges]
    known = [size for size in sizes if size is not None]
    store = store_of(target.topic, owner) if owner else None
    return {
        "application": owner,
        "store": store,
        "topic": target.topic,
        "kind": "changelog" if target.topic.endswith("-changelog") else "repartition" if target.topic.endswith("-repartition") else "other",
        "type": guess.type,
        "type_confidence": guess.confidence,
        "type_reasons": list(guess.reasons),
        "partitions": target.partitions,
        "offsets": target.offsets,
        "size_bytes": sum(known) if len(known) == len(sizes) else None,
        "cleanup_policy": target.setting("cleanup.policy"),
        "cleaning": _cleaning(target, found),
        "min_cleanable_dirty_ratio": _number(target.setting("min.cleanable.dirty.ratio")),
        "differences": [each.as_json() for each in differences(guess.type, target.settings)],
        "logs": [
            {
                "partition": place.partition,
                "log_start_offset": log.start,
                "first_record_offset": found.first.get(place),
                "log_end_offset": log.end,
                "size_bytes": found.sizes.get(place),
            }
            for place, log in target.ranges.items()
        ],
    }


def _cleaning(target: FrozenChangelog, found: _Facts) -> str:
    if "compact" not in target.setting("cleanup.policy"):
        return OFF
    if not target.offsets:
        return EMPTY
    firsts = [(found.first.get(place), log.start) for place, log in target.ranges.items() if not log.empty]
    if any(first is None or first > start for first, start in firsts):
        return COMPACTED
    segment = target.setting("segment.bytes")
    if segment.isdigit() and any(found.sizes.get(place, 0) > int(segment) for place in target.ranges):
        return CLOSED
    return ACTIVE


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
