"""The settings of a topic: types and ranges in Apache Kafka 4.4 (``LogConfig``), and the brokers' settings they default to.

Values are checked and normalized to the form that Kafka shows, so that what is read back compares equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kops.core.durations import duration_text, parse_duration
from kops.core.errors import UsageProblem
from kops.core.models import NewTopic, Setting, Topic
from kops.core.settings import own_settings
from kops.core.sizes import BYTES, parse_size, size_text

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


@dataclass(frozen=True)
class WholeNumber:
    """A whole number: Java's INT or LONG.

    :param special: one value that is allowed outside the range
    """

    least: int
    most: int = LONG_MAX
    special: int | None = None

    def read(self, text: str) -> str:
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError("it must be a whole number")
        number = int(text)
        if number != self.special and not self.least <= number <= self.most:
            also = f", or {self.special}" if self.special is not None else ""
            bound = f"at least {self.least}" if number < self.least else f"at most {self.most}"
            raise ValueError(f"it must be {bound}{also}")
        return str(number)


@dataclass(frozen=True)
class Ratio:
    """A number between 0 and 1: Java's DOUBLE."""

    def read(self, text: str) -> str:
        if not re.fullmatch(r"[0-9]*\.?[0-9]+", text) or not 0 <= float(text) <= 1:
            raise ValueError("it must be a number between 0 and 1")
        return text


@dataclass(frozen=True)
class Choice:
    """One of several words, case-sensitive."""

    words: tuple[str, ...]

    def read(self, text: str) -> str:
        if text not in self.words:
            raise ValueError(f"it must be one of {', '.join(self.words)}")
        return text


@dataclass(frozen=True)
class Flag:
    """Java's BOOLEAN."""

    def read(self, text: str) -> str:
        if text.lower() not in ("true", "false"):
            raise ValueError("it must be true or false")
        return text.lower()


@dataclass(frozen=True)
class WordList:
    """A list of known words; may be empty."""

    words: tuple[str, ...]

    def read(self, text: str) -> str:
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        if not set(parts) <= set(self.words):
            raise ValueError(f"it must be a list of {' and '.join(self.words)}")
        return ",".join(dict.fromkeys(parts))


@dataclass(frozen=True)
class Replicas:
    """Throttled replicas: ``*`` or ``partition:broker,...``."""

    def read(self, text: str) -> str:
        if text not in ("", "*") and not all(re.fullmatch(r"\d+:\d+", part.strip()) for part in text.split(",")):
            raise ValueError("it must be * or a list like 0:1,1:2 (partition:broker)")
        return text


Kind = WholeNumber | Ratio | Choice | Flag | WordList | Replicas

VENDOR_PREFIXES = ("confluent.", "redpanda.", "internal.")
"""Settings of other vendors' brokers; the broker itself checks them."""

POLICY = "cleanup.policy"
RETENTION = "retention.ms"
MIN_IN_SYNC = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"

SETTINGS: Mapping[str, Kind] = {
    "cleanup.policy": WordList(("compact", "delete")),
    "compression.gzip.level": WholeNumber(1, 9, special=-1),
    "compression.lz4.level": WholeNumber(1, 17),
    "compression.type": Choice(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    "compression.zstd.level": WholeNumber(-131072, 22),
    "delete.retention.ms": WholeNumber(0),
    "errors.deadletterqueue.group.enable": Flag(),
    "file.delete.delay.ms": WholeNumber(0),
    "flush.messages": WholeNumber(1),
    "flush.ms": WholeNumber(0),
    "follower.replication.throttled.replicas": Replicas(),
    "index.interval.bytes": WholeNumber(0, INT_MAX),
    "leader.replication.throttled.replicas": Replicas(),
    "local.retention.bytes": WholeNumber(-2),
    "local.retention.ms": WholeNumber(-2),
    "max.compaction.lag.ms": WholeNumber(1),
    "max.decompressed.message.bytes": WholeNumber(1, INT_MAX - 8),
    "max.message.bytes": WholeNumber(0, INT_MAX),
    "message.timestamp.after.max.ms": WholeNumber(0),
    "message.timestamp.before.max.ms": WholeNumber(0),
    "message.timestamp.type": Choice(("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": Ratio(),
    "min.compaction.lag.ms": WholeNumber(0),
    "min.insync.replicas": WholeNumber(1, INT_MAX),
    "preallocate": Flag(),
    "remote.copy.lag.bytes": WholeNumber(-1),
    "remote.copy.lag.ms": WholeNumber(-1),
    "remote.log.copy.disable": Flag(),
    "remote.log.delete.on.disable": Flag(),
    "remote.storage.enable": Flag(),
    "retention.bytes": WholeNumber(-LONG_MAX - 1),
    "retention.ms": WholeNumber(-1),
    "segment.bytes": WholeNumber(1048576, INT_MAX),
    "segment.index.bytes": WholeNumber(4, INT_MAX),
    "segment.jitter.ms": WholeNumber(0),
    "segment.ms": WholeNumber(1),
    "unclean.leader.election.enable": Flag(),
}

_WITH_UNITS: Mapping[str, Callable[[str], int]] = {".ms": parse_duration, ".bytes": parse_size}
"""How to read a value with a unit, by how a setting's name ends."""
_SECOND = 1000

_BROKER_SETTINGS: Mapping[str, tuple[tuple[str, int], ...]] = {
    POLICY: (("log.cleanup.policy", 1),),
    RETENTION: (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    "retention.bytes": (("log.retention.bytes", 1),),
    MIN_IN_SYNC: ((MIN_IN_SYNC, 1),),
    UNCLEAN: ((UNCLEAN, 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
}
"""The broker settings that a topic without its own value defaults to: the first one that the broker has set, times a factor
(``ServerTopicConfigSynonyms``). Contains only those that decide whether records are kept and accepted."""


def canonical(name: str, text: str) -> str:
    """Return the value of a setting as Kafka shows it; a setting that is not in ``SETTINGS`` is left as it is.

    Durations and sizes may have units: ``retention.ms=7d``, ``retention.bytes=50GiB``.

    :raises UsageProblem: if Kafka would not accept it
    """
    kind = SETTINGS.get(name)
    if kind is None:
        return text
    try:
        return kind.read(in_kafkas_unit(name, text.strip()))
    except ValueError as problem:
        raise UsageProblem(f"{name}={text} is not valid: {problem}", setting=name) from problem
    except UsageProblem as problem:
        raise UsageProblem(f"{name}={text} is not valid: {problem.message}", hint=problem.hint, setting=name) from problem


def canonical_settings(settings: Mapping[str, str], *, also_known: Callable[[], set[str]] = set) -> dict[str, str]:
    """Check settings and return them as Kafka shows them.

    :param also_known: returns the names that the brokers know; called only for a name that kops does not know: brokers may be newer
    :raises UsageProblem: for a name that does not exist, suggesting the most similar one, and for an invalid value
    """
    checked = {name: canonical(name, text) for name, text in settings.items()}
    require_setting_names(checked, also_known=also_known)
    return checked


def require_setting_names(names: Iterable[str], *, also_known: Callable[[], set[str]] = set) -> None:
    """Check that these settings exist.

    :param also_known: see :func:`canonical_settings`
    :raises UsageProblem: for a name that does not exist, suggesting the most similar one
    """
    for name in names:
        if name in SETTINGS or name.startswith(VENDOR_PREFIXES):
            continue
        import difflib

        meant = next(iter(difflib.get_close_matches(name, list(SETTINGS), n=1, cutoff=0.75)), None)
        if meant is None and name in also_known():
            continue
        hint = f"did you mean {meant}?" if meant else "`kops topics describe TOPIC --all-settings` shows the names"
        raise UsageProblem(f"there is no topic setting {name}", hint=hint, setting=name)


def as_new(topic: Topic, settings: Mapping[str, Setting]) -> NewTopic:
    """Return the topic that would be created like one that exists."""
    return NewTopic(topic.name, len(topic.partitions), topic.replication_factor, own_settings(settings))


def broker_defaults(broker: Mapping[str, str | None]) -> dict[str, str]:
    """Return the defaults of a new topic for the settings that matter most.

    :param broker: the settings of a broker
    """
    found: dict[str, str] = {}
    for name, synonyms in _BROKER_SETTINGS.items():
        for setting, factor in synonyms:
            value = broker.get(setting)
            if value is not None:
                found[name] = value if factor == 1 else str(int(value) * factor)
                break
    return found


def readable_value(name: str, value: str) -> str:
    """Format a value for people; times get a duration and bytes a size: ``604800000 (7d)``, ``1073741824 (1.0 GiB)``."""
    if not value.isascii() or not value.isdigit() or int(value) > LONG_MAX // 2:
        return value
    number = int(value)
    if name.endswith(".ms") and number >= _SECOND:
        return f"{value} ({duration_text(number)})"
    return f"{value} ({size_text(number)})" if name.endswith(".bytes") and number >= BYTES["KiB"] else value


def in_kafkas_unit(name: str, text: str) -> str:
    """Return a duration in milliseconds and a size in bytes, where Kafka wants these; any other text as it is."""
    read = next((read for ending, read in _WITH_UNITS.items() if name.endswith(ending)), None)
    return str(read(text)) if read and re.fullmatch(r"[0-9.]+ ?[A-Za-z][0-9A-Za-z]*", text) else text
