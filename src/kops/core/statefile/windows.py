"""The windows of a store."""

from __future__ import annotations

from kops.core.durations import duration_text
from kops.core.statefile.fields import Fields
from kops.core.statefile.forms import read_duration, read_optional_name
from kops.core.statefile.models import SESSION, SLIDING, WINDOW, Windows
from kops.core.statefile.versions import EXPLICIT_GRACE, RETENTION_OF_WINDOWS, SESSION_GAP, Version, line_of

WINDOW_FIELDS = ("window", "emit", "suppress")
"""The fields that only windowed stores have."""
EMIT = ("on-update", "on-close")
_LENGTH = {WINDOW: "size", SLIDING: "difference", SESSION: "gap"}
"""The name of a window's length: as in ``TimeWindows``, ``SlidingWindows``, ``SessionWindows``."""
_OTHERS = {WINDOW: ("advance", "alignment", "grace", "retention"), SLIDING: ("grace", "retention"), SESSION: ("grace", "retention")}
_DEFAULT_CALL = {WINDOW: "TimeWindows.of", SLIDING: "SlidingWindows", SESSION: "SessionWindows.with"}


def read_windows(fields: Fields, kind: str, application: str, version: Version | None) -> Windows:
    """Read ``window``, ``emit`` and ``suppress``, with the defaults and the limits of Kafka Streams.

    :param kind: the type of the store
    :param version: of kafka-streams
    :raises ConfigError: for what Kafka Streams refuses too, and for a missing field that has no reliable default
    """
    length_name = _LENGTH[kind]
    inner = fields.inside("window", (length_name, *_OTHERS[kind]))
    length = read_duration(inner, length_name, None)
    if kind != SLIDING and length == 0:
        raise inner.wrong(length_name, "is nothing", "longer than 0ms")
    said = _needed(inner, kind, version)
    grace = read_duration(inner, "grace", 0)
    advance = read_duration(inner, "advance", length) if kind == WINDOW else length
    if kind == WINDOW and not 0 < advance <= length:
        raise inner.wrong("advance", f"is {duration_text(advance)}", f"more than 0ms and no more than the size, {duration_text(length)}")
    alignment = read_duration(inner, "alignment", 0) if kind == WINDOW else 0
    if alignment and alignment >= advance:
        raise inner.wrong("alignment", f"is {duration_text(alignment)}", f"less than from one start to the next, {duration_text(advance)}")
    # TimeWindowedKStreamImpl, SlidingWindowedKStreamImpl and SessionWindowedKStreamImpl refuse a retention below this.
    least = (2 * length if kind == SLIDING else length) + grace
    retention = read_duration(inner, "retention", least)
    if retention < least:
        what = "twice the difference" if kind == SLIDING else f"the {length_name}"
        raise inner.wrong("retention", f"is {duration_text(retention)}", f"at least {what} and the grace, {duration_text(least)}")
    closing = fields.one_of("emit", EMIT, EMIT[0]) == EMIT[1]
    buffer = read_optional_name(fields, "suppress")
    return Windows(
        kind,
        length,
        advance,
        grace,
        retention,
        closing,
        f"{application}-{buffer}-changelog" if buffer else None,
        closes_after_gap=line_of(said) >= SESSION_GAP,
        alignment_ms=alignment,
        says_retention=inner.body.get("retention") is not None,
    )


def _needed(inner: Fields, kind: str, version: Version | None) -> Version:
    """Return the version, after checking that the file states everything that the version does not decide.

    :raises ConfigError: naming what is missing, and the application's default for it
    """
    if version is None:
        hint = 'the version of kafka-streams decides how long windows take records and stay, such as streams: {version: "3.9"}'
        raise Fields(inner.file, "streams", {}).wrong("version", f"is missing, and {inner.place.rpartition('.')[0]} has windows", hint)
    if line_of(version) >= EXPLICIT_GRACE:
        return version
    of = ".".join(map(str, version))
    if inner.body.get("grace") is None:
        length = _LENGTH[kind]
        default = f"; {_DEFAULT_CALL[kind]}(..) without one keeps windows open for 24h less the {length}" if kind != SLIDING else ""
        raise inner.wrong(
            "grace", f"is missing, and kafka-streams {of} has no default to rely on", f"as the application's windows have it{default}"
        )
    if inner.body.get("retention") is None:
        usual = "a day, or more where the windows are longer" if line_of(version) < RETENTION_OF_WINDOWS else "size and grace"
        hint = f"{usual}, unless Materialized.withRetention says otherwise: the changelog's retention.ms has it, and a day that is added"
        raise inner.wrong("retention", f"is missing, and kafka-streams {of} has no default to rely on", hint)
    return version
