"""Finds evidence of a store's type in the bytes of some records: what is decoded must agree with the record's own timestamp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.core.records.models import Record
from kops.formats.streams import (
    faust,
    foreign_keys,
    join_buffers,
    positions,
    session_keys,
    stream_joins,
    suppression,
    table_changes,
    window_keys,
)
from kops.formats.streams import store_types as types


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation.

    :param type: the type of store that it is about; empty: none, it is shown with every guess
    :param weight: its strength; negative: evidence against the type
    :param sentence: what was observed, without a full stop; empty: not worth showing
    """

    type: str
    weight: int
    sentence: str = ""


_ENOUGH = 0.9
"""Share of the records that must fit a type: some may be damaged."""
_LONGEST_WINDOW = 10 * 365 * 86_400_000
"""In milliseconds; a number that looks like a longer window means something else."""
_FITS, _AGAINST, _NOTHING_ELSE, _SPELLING = 6, -8, 5, 2

_OWN_HEADERS = {suppression.VERSION_HEADER, positions.POSITION_HEADER}
"""Headers that Kafka Streams adds to its own records; others came with the input."""

Check = Callable[[Record], bool]


def bytes_evidence(records: Sequence[Record], topic: str) -> list[Evidence]:
    keyed = [record for record in records if record.key is not None]
    live = [record for record in keyed if record.value is not None]
    found: list[Evidence] = []
    for kind, check, words in _CHECKS:
        if not live:
            break
        if kind in _OF_REPARTITION and topic.endswith("-changelog"):
            continue
        fitting = sum(_fits(check, record) for record in live)
        if fitting >= _ENOUGH * len(live):
            share = "all" if fitting == len(live) else f"{fitting} of"
            found.append(Evidence(kind, _WEIGHTS.get(kind, _FITS), f"{share} {len(live)} examined records {words}"))
        else:
            found.append(Evidence(kind, _AGAINST, f"only {fitting} of {len(live)} examined records {words}"))
    asides = _asides(keyed, live, topic)
    if live and not any(each.type and each.weight > _SPELLING for each in [*found, *asides]):
        why = "no examined key and value has the parts of another type"
        plain = (
            (types.KEY_VALUE, types.VERSIONED) if topic.endswith("-changelog") else (types.KEY_VALUE, types.VERSIONED, types.REPARTITION)
        )
        found += [Evidence(kind, _NOTHING_ELSE, why) for kind in plain]
    return [*found, *asides]


def _asides(keyed: Sequence[Record], live: Sequence[Record], topic: str) -> list[Evidence]:
    found = []
    named = [name for name in (_model_name(record) for record in live) if name]
    if named:
        found.append(Evidence(types.FAUST, _FITS, f"values name a Faust model, such as {named[0]}"))
    if keyed and all(_is_quoted(record) for record in keyed):
        found.append(Evidence(types.FAUST, _SPELLING, "keys are JSON texts with their quotes, as Faust writes them"))
    if any(_has_position(record) for record in keyed):
        found.append(Evidence("", 0, "records carry the position of their input (headers v and c), for consistent interactive queries"))
    if topic.endswith("-changelog") and any(set(dict(record.headers)) - _OWN_HEADERS for record in keyed):
        found.append(Evidence("", 0, "records have headers: Kafka Streams 4.3 or newer wrote them, or something else did"))
    return found


def _fits(check: Check, record: Record) -> bool:
    try:
        return check(record)
    except UndecodableRecord:
        return False


def _is_window(record: Record) -> bool:
    window = window_keys.decode(_key(record))
    return window.sequence == 0 and window.start_ms <= _time(record) and _near(window.start_ms, record)


def _is_join(record: Record) -> bool:
    window = window_keys.decode(_key(record))
    return (window.sequence or 0) > 0 and window.start_ms == _time(record)


def _is_session(record: Record) -> bool:
    session = session_keys.decode(_key(record))
    return session.start_ms <= _time(record) <= session.end_ms and _near(session.start_ms, record)


def _is_outer_join(record: Record) -> bool:
    return stream_joins.decode_key(_key(record)).timestamp_ms == _time(record) and bool(stream_joins.decode_values(_value(record)))


def _is_suppressed(record: Record) -> bool:
    return suppression.version_of(record.headers) > 0 and suppression.decode(_value(record), record.headers).context is not None


def _is_join_buffer(record: Record) -> bool:
    key, value = join_buffers.decode_key(_key(record)), join_buffers.decode_value(_value(record))
    return key.timestamp_ms == value.context.timestamp_ms


def _is_subscription(record: Record) -> bool:
    return foreign_keys.decode_key(_key(record)).primary_key == foreign_keys.decode_subscription(_value(record)).primary_key


def _is_registration(record: Record) -> bool:
    foreign_keys.decode_subscription(_value(record))
    return True


def _is_response(record: Record) -> bool:
    response = foreign_keys.decode_response(_value(record))
    return response.value_hash is not None or response.value is None


def _is_table_change(record: Record) -> bool:
    table_changes.decode(_value(record))
    return True


def _is_faust_window(record: Record) -> bool:
    window = faust.decode_window_key(_key(record))
    return window.start <= window.end


_CHECKS: tuple[tuple[str, Check, str], ...] = (
    (types.WINDOW, _is_window, "have keys that end in the start of a window, which their times are not before, and the sequence 0"),
    (types.JOIN, _is_join, "have keys that end in the record's own time and a sequence above 0"),
    (types.SESSION, _is_session, "have keys that end in the bounds of a session, which their times are in"),
    (types.OUTER_JOIN, _is_outer_join, "have keys that begin with the record's own time and a side, and lists of values with their side"),
    (types.SUPPRESS, _is_suppressed, "have the header v with a version, and values with the record they came from"),
    (types.JOIN_BUFFER, _is_join_buffer, "have keys that begin with 0 and a time, and values with the record of that time"),
    (types.SUBSCRIPTION, _is_subscription, "have keys of two parts, and subscriptions of the second as values"),
    (types.SUBSCRIPTION_REGISTRATION, _is_registration, "have values that are subscriptions of a foreign-key join"),
    (types.SUBSCRIPTION_RESPONSE, _is_response, "have values that may answer a foreign-key join"),
    (types.GROUPED_TABLE, _is_table_change, "have values that end in 0, 1 or 2, for the old value, the new one or both"),
    (types.FAUST_WINDOW, _is_faust_window, "have JSON keys with a window in seconds"),
)
_WEIGHTS = {types.SUBSCRIPTION_RESPONSE: 2, types.SUBSCRIPTION_REGISTRATION: 3, types.GROUPED_TABLE: 3}
_OF_REPARTITION = (types.SUBSCRIPTION_REGISTRATION, types.SUBSCRIPTION_RESPONSE, types.GROUPED_TABLE)


def _near(start_ms: int, record: Record) -> bool:
    """Whether a window may belong to its record: except for windows that start at 0, none is longer than ten years."""
    return start_ms == 0 or _time(record) - start_ms <= _LONGEST_WINDOW


def _model_name(record: Record) -> str | None:
    if b'"__faust"' not in _value(record):
        return None
    try:
        return faust.model_name(faust.decode(_value(record)))
    except UndecodableRecord:
        return None


def _is_quoted(record: Record) -> bool:
    try:
        return isinstance(faust.decode(_key(record)), str)
    except UndecodableRecord:
        return False


def _has_position(record: Record) -> bool:
    try:
        return positions.position_of(record.headers) is not None
    except UndecodableRecord:
        return False


def _key(record: Record) -> bytes:
    return record.key or b""


def _value(record: Record) -> bytes:
    return record.value or b""


def _time(record: Record) -> int:
    return -1 if record.timestamp is None else record.timestamp
