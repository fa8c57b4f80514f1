"""The template of a state file: it has the names of the stores, and every field that a person has to fill in is marked as open. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.durations import duration_text
from kops.core.errors import ConfigError
from kops.core.statefile.models import KEY_VALUE, VERSIONED

OPEN = "TODO"
"""The value of a field that a person has to fill in."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
_WORDS_OF_YAML = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
_COMMENTS = {
    "version": 'of kafka-streams, such as "4.3": the rules depend on it',
    "guarantee": "processing.guarantee: at_least_once or exactly_once_v2",
    "from": "formats: string, bytes, long, int, double, json, uuid, avro, json-schema, protobuf, ...",
    "type": "window, sliding-window or session: its changelog deletes old records",
    "window": "{size: 1m, grace: 0ms}; sliding-window: {difference: 1m, grace: 0ms}; session: {gap: 5m, grace: 0ms}",
    "history_retention": "min.compaction.lag.ms of its changelog, without the day that Kafka Streams adds",
    "aggregate": '{count: true}, {sum: value.price, as: double}, {last: value.price, as: double}, {reducer: "module:function"}, ...',
}
_OPTIONAL = """\
    # where: value.price is not null   # filter: Spark SQL
    # key_by: value.item               # the new key of selectKey, map or groupBy: Spark SQL
    # key_as: string                   # its format"""
_TABLE = "    # a table of its topic has no aggregate; a join of tables has `join` in its place"


@dataclass(frozen=True)
class StoreSeen:
    """A store, as its changelog shows it.

    :param type: ``key-value``, ``versioned``, or that of windows, whose kind the changelog does not show
    :param history_ms: how long a versioned store keeps versions
    """

    name: str
    changelog: str
    type: str
    history_ms: int | None = None


def template(application: str, stores: Iterable[StoreSeen]) -> dict[str, Any]:
    """Return the state file of an application, in which the stores are named, and what is not known is open."""
    streams = {"version": OPEN, "guarantee": OPEN}
    return {"application": application, "streams": streams, "stores": {store.name: _fields(store) for store in stores}}


def _fields(store: StoreSeen) -> dict[str, Any]:
    start = {"from": {"topic": OPEN, "key": OPEN, "value": OPEN}}
    if store.type == VERSIONED:
        kept = OPEN if store.history_ms is None else duration_text(store.history_ms)
        return {"type": VERSIONED, **start, "history_retention": kept}
    if store.type == KEY_VALUE:
        return {**start, "aggregate": OPEN}
    return {"type": OPEN, **start, "window": OPEN, "aggregate": OPEN}


def template_text(body: Mapping[str, Any], stores: Sequence[StoreSeen], inputs: Sequence[str]) -> str:
    """Return a template as YAML with comments.

    :param body: ``template``
    :param inputs: topics that the application reads
    """
    read = f"It reads: {', '.join(inputs)}." if inputs else "Which topics it reads is not known."
    lines = [
        f"# Fill in each {OPEN}; then `kops state verify FILE` compares what the file says with the changelogs. {read}",
        "# Delete the stores that a state file cannot describe, such as the buffers of `suppress` and of joins of streams.",
        f"application: {_scalar(body['application'])}",
        "streams:",
        *_lines(body["streams"], "  "),
        "stores:",
    ]
    for store in stores:
        lines += [f"  {_scalar(store.name)}:  # changelog: {store.changelog}", *_lines(body["stores"][store.name], "    ")]
        if store.type != VERSIONED:
            lines.append(_OPTIONAL)
        if store.type == KEY_VALUE:
            lines.append(_TABLE)
    return "\n".join(lines) + "\n"


def _lines(fields: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, value in fields.items():
        comment = "" if value == VERSIONED else f"  # {_COMMENTS[name]}"
        yield f"{indent}{name}: {_scalar(value)}{comment}"


def _scalar(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_scalar(part)}" for name, part in value.items()) + "}"
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML else json.dumps(text, ensure_ascii=False)


def open_fields(body: Any, place: str = "") -> Iterator[str]:
    """Yield the paths of the open fields of a state file."""
    if isinstance(body, Mapping):
        for name, value in body.items():
            yield from open_fields(value, f"{place}.{name}".lstrip("."))
    elif body == OPEN:
        yield place


def refuse_open(path: str, body: Any) -> None:
    """Refuse a state file that has open fields.

    :raises ConfigError: naming all of them
    """
    left = list(open_fields(body))
    if left:
        hint = f"the comment beside each {OPEN} says what to write there"
        raise ConfigError(f"{path}: still open: {', '.join(left)}", hint=hint, file=path, fields=left, field=left[0])
