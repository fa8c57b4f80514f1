"""Which names a topic may have, from ``org.apache.kafka.common.internals.Topic``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kops.core.errors import NotFound, Refused, UsageProblem
from kops.core.models import INTERNAL_TOPICS
from kops.core.streams.topics import CHANGELOG, REPARTITION

LONGEST_NAME = 249
_ILLEGAL = re.compile(r"[^A-Za-z0-9._-]")

STREAMS_SUFFIXES = (CHANGELOG, REPARTITION)

PROGRESS_TOPIC = "kops-progress"
"""Where replays and redrives record what they have sent; it belongs to kops itself, not to an application."""


def no_topics_text(names: Sequence[str]) -> str:
    """Return the message for topics that do not exist, the same everywhere."""
    return f"there is no topic {', '.join(names)}"


def topics_not_found(names: Sequence[str], *, hint: str = "`kops topics list` shows those that exist") -> NotFound:
    one = {"topic": names[0]} if len(names) == 1 else {}
    return NotFound(no_topics_text(names), hint=hint, **one, topics=list(names))


def name_problem(name: str) -> str | None:
    """Return why a topic cannot have this name; None if it can."""
    if not name:
        return "a topic name cannot be empty"
    if name in (".", ".."):
        return f"a topic cannot be named {name!r}"
    if len(name) > LONGEST_NAME:
        return f"the topic name {name[:20]}... has {len(name)} characters; {LONGEST_NAME} are allowed"
    illegal = _ILLEGAL.search(name)
    return f"the topic name {name!r} has the character {illegal.group()!r}" if illegal else None


def require_names(names: Iterable[str]) -> None:
    """Check the names of topics to be created together.

    :raises UsageProblem: for the first invalid name, and for two that would share their metrics
    """
    seen: dict[str, str] = {}
    for name in names:
        problem = name_problem(name)
        if problem:
            raise UsageProblem(problem, hint="letters, digits, '.', '_' and '-' are allowed", topic=name)
        other = seen.setdefault(metric_name(name), name)
        if other != name:
            raise UsageProblem(
                f"the topics {other} and {name} collide: Kafka's metric names turn '.' into '_'", hint="choose one of the two characters"
            )


def metric_name(name: str) -> str:
    """Return the name that a topic has in metrics; a broker refuses two topics with the same one."""
    return name.replace(".", "_")


def colliding(name: str, existing: Iterable[str]) -> str | None:
    """Return an existing topic that would share its metrics with a new one; None if there is none."""
    if not set(name) & set("._"):
        return None
    wanted = metric_name(name)
    return next((other for other in existing if other != name and metric_name(other) == wanted), None)


def is_kafkas_own(name: str) -> bool:
    return name in INTERNAL_TOPICS


def refuse_kafkas_own(names: Iterable[str], they: str, verb: str) -> None:
    """Refuse to change the brokers' internal topics.

    :param they: what the brokers do with such a topic, or would suffer
    :raises Refused: naming the first
    """
    for name in filter(is_kafkas_own, names):
        raise Refused(f"{name} belongs to the brokers, which {they}", hint=f"kops never {verb} it")
