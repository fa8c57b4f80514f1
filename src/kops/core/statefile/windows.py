"""The windows of a store."""

from __future__ import annotations

from kops.core.durations import duration_text
from kops.core.statefile.fields import Fields
from kops.core.statefile.forms import read_duration, read_optional_name
from kops.core.statefile.models import SESSION, SLIDING, WINDOW, Windows

WINDOW_FIELDS = ("window", "emit", "suppress")
"""The fields that windowed stores have more than others."""
EMIT = ("on-update", "on-close")
_LENGTH = {WINDOW: "size", SLIDING: "difference", SESSION: "gap"}
"""What the length of a window is called: ``TimeWindows``, ``SlidingWindows``, ``SessionWindows``."""
_OTHERS = {WINDOW: ("advance", "grace", "retention"), SLIDING: ("grace", "retention"), SESSION: ("grace", "retention")}


def read_windows(fields: Fields, kind: str, application: str) -> Windows:
    """Read ``window``, ``emit`` and ``suppress``, with the defaults and the limits of Kafka Streams.

    :param kind: the type of the store
    :raises ConfigError: for what Kafka Streams itself refuses too
    """
    length_name = _LENGTH[kind]
    inner = fields.inside("window", (length_name, *_OTHERS[kind]))
    length = read_duration(inner, length_name, None)
    if kind != SLIDING and length == 0:
        raise inner.wrong(length_name, "is nothing", "longer than 0ms")
    grace = read_duration(inner, "grace", 0)
    advance = read_duration(inner, "advance", length) if kind == WINDOW else length
    if kind == WINDOW and not 0 < advance <= length:
        raise inner.wrong("advance", f"is {duration_text(advance)}", f"more than 0ms and no more than the size, {duration_text(length)}")
    # TimeWindowedKStreamImpl, SlidingWindowedKStreamImpl and SessionWindowedKStreamImpl refuse less.
    least = (2 * length if kind == SLIDING else length) + grace
    retention = read_duration(inner, "retention", least)
    if retention < least:
        what = "twice the difference" if kind == SLIDING else f"the {length_name}"
        raise inner.wrong("retention", f"is {duration_text(retention)}", f"at least {what} and the grace, {duration_text(least)}")
    closing = fields.one_of("emit", EMIT, EMIT[0]) == EMIT[1]
    buffer = read_optional_name(fields, "suppress")
    return Windows(kind, length, advance, grace, retention, closing, f"{application}-{buffer}-changelog" if buffer else None)
