"""A draft of a state file: what is known is filled in, the rest is marked as open. Pure."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kops.core.errors import ConfigError
from kops.core.records.format_guess import FormatGuess
from kops.core.statefile.models import KEY_VALUE

NOTHING = FormatGuess(None, "no record to look at")


@dataclass(frozen=True)
class StoreFacts:
    """What the changelog of a store shows.

    :param changelog: whether it has a changelog topic of its own
    :param type: as guessed from settings and records: ``key-value``, ``window``, ``session``, ``versioned``
    :param reasons: why
    :param retention_ms: ``retention.ms`` of the changelog, for windows and sessions
    :param history_ms: ``min.compaction.lag.ms`` of the changelog, for a versioned store
    :param step_ms: the distances between window starts are multiples of this; None if there are fewer than two windows
    :param alignment_ms: how far after a multiple of ``step_ms`` windows start
    :param answers: fields that the program itself answers; None: it does not need the field
    :param extra: fields that only the program shows
    :param beyond: why no state file can describe the store, as the program shows
    :param suppresses: whether it is the buffer of ``suppress()``, as the program shows
    :param code: classes of the program that compute it
    :param join: the type of the join that it is, as the program shows
    """

    changelog: bool
    type: str = KEY_VALUE
    reasons: tuple[str, ...] = ()
    retention_ms: int | None = None
    history_ms: int | None = None
    step_ms: int | None = None
    alignment_ms: int = 0
    key: FormatGuess = NOTHING
    value: FormatGuess = NOTHING
    answers: Mapping[str, Entry | None] = field(default_factory=dict)
    extra: tuple[Entry, ...] = ()
    beyond: str | None = None
    suppresses: bool = False
    code: tuple[str, ...] = ()
    join: str | None = None


@dataclass(frozen=True)
class TopicFacts:
    """What the records of a topic show.

    :param answers: what the program itself says of its times and its start; None: nothing is known of them
    """

    key: FormatGuess = NOTHING
    value: FormatGuess = NOTHING
    answers: tuple[Entry, ...] | None = None


@dataclass(frozen=True)
class Facts:
    """What the cluster shows, and the program, if it was captured.

    :param transactions: whether changelogs end in transaction markers; None if none has records
    :param streams: the fields of ``streams``, as the program says; None: it was not captured
    :param optimized: whether topics of tables are their changelogs, as the program says
    :param partitioners: the classes of the program's own partitioners, by repartition topic
    """

    stores: Mapping[str, StoreFacts]
    topics: Mapping[str, TopicFacts]
    transactions: bool | None = None
    streams: tuple[Entry, ...] | None = None
    optimized: bool | None = None
    partitioners: Mapping[str, str] = field(default_factory=dict)

    def store(self, name: str) -> StoreFacts:
        return self.stores.get(name, StoreFacts(changelog=False))

    def topic(self, name: str) -> TopicFacts:
        return self.topics.get(name, TopicFacts())


OPEN = "TODO"
"""The value of a field that a person has to fill in."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
_WORDS_OF_YAML = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
_WIDTH = 80


@dataclass(frozen=True)
class Entry:
    """A field of the draft.

    :param value: a text, a flow mapping (``{count: true}``), or fields of its own
    :param comment: an explanation; for an open field, what to write there
    """

    name: str
    value: str | bool | Mapping[str, Any] | tuple[Entry, ...]
    comment: str = ""

    @property
    def is_open(self) -> bool:
        return self.value == OPEN


@dataclass(frozen=True)
class Draft:
    """An unfinished state file.

    :param skipped: stores that a state file cannot describe, and why
    :param notes: what to know, one sentence each
    """

    application: str
    entries: tuple[Entry, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def open_fields(self) -> tuple[tuple[str, str], ...]:
        """The path of each open field, and what to write there."""
        return tuple(_open(self.entries, ""))

    def text(self) -> str:
        lines = list(_lines(self.entries, ""))
        for store, why in self.skipped.items():
            lines += ["", *_comment(f"{store} is not in this file: {why}", "  ")]
        return "\n".join(lines) + "\n"

    def as_json(self) -> dict[str, Any]:
        return {
            "application": self.application,
            "state_file": _body(self.entries),
            "open": [{"field": path, "todo": comment} for path, comment in self.open_fields],
            "skipped": [{"store": store, "reason": why} for store, why in self.skipped.items()],
            "notes": list(self.notes),
        }


def open_entry(name: str, todo: str) -> Entry:
    return Entry(name, OPEN, todo)


def _open(entries: Sequence[Entry], place: str) -> Iterator[tuple[str, str]]:
    for entry in entries:
        path = f"{place}.{entry.name}".lstrip(".")
        if isinstance(entry.value, tuple):
            yield from _open(entry.value, path)
        elif entry.is_open:
            yield path, entry.comment


def _lines(entries: Sequence[Entry], indent: str) -> Iterator[str]:
    for entry in entries:
        if entry.comment:
            yield from _comment(f"TODO: {entry.comment}" if entry.is_open else entry.comment, indent)
        if isinstance(entry.value, tuple):
            yield f"{indent}{_scalar(entry.name)}:"
            yield from _lines(entry.value, indent + "  ")
        else:
            yield f"{indent}{_scalar(entry.name)}: {_scalar(entry.value)}"


def _comment(text: str, indent: str) -> list[str]:
    return [f"{indent}# {line}" for line in textwrap.wrap(text, _WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False)]


def _scalar(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(name)}: {_scalar(part)}" for name, part in value.items()) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML else json.dumps(text, ensure_ascii=False)


def _body(entries: Sequence[Entry]) -> dict[str, Any]:
    return {entry.name: _body(entry.value) if isinstance(entry.value, tuple) else entry.value for entry in entries}


def refuse_open(path: str, body: Any) -> None:
    """Refuse a state file that has open fields.

    :raises ConfigError: naming all of them
    """
    left = list(_open_places(body, ""))
    if left:
        hint = f"the comment above each {OPEN} says what to write there"
        raise ConfigError(f"{path}: still open: {', '.join(left)}", hint=hint, file=path, fields=left, field=left[0])


def _open_places(body: Any, place: str) -> Iterator[str]:
    if isinstance(body, Mapping):
        for name, value in body.items():
            yield from _open_places(value, f"{place}.{name}".lstrip("."))
    elif body == OPEN:
        yield place
