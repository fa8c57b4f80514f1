"""Sets of offsets as ascending intervals [start, end), and their compact serialization. Pure."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable, Iterator

Intervals = tuple[tuple[int, int], ...]
_LAST7, _MORE = 0x7F, 0x80


def joined(*sets: Iterable[tuple[int, int]]) -> Intervals:
    found: list[tuple[int, int]] = []
    for start, end in sorted(each for one in sets for each in one):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def below(intervals: Iterable[tuple[int, int]], end: int) -> Intervals:
    return joined((start, min(end, stop)) for start, stop in intervals)


def intervals_text(intervals: Intervals) -> str:
    """Serialize as the distances between bounds, compressed; empty for the empty set."""
    if not intervals:
        return ""
    data, at = bytearray(), 0
    for bound in (bound for each in intervals for bound in each):
        data += bytes(_varint(bound - at))
        at = bound
    return base64.b64encode(zlib.compress(bytes(data), 9)).decode()


def intervals_of(text: str) -> Intervals:
    """Parse what ``intervals_text`` returned.

    :raises ValueError: if the text is not valid
    """
    if not text:
        return ()
    try:
        data = zlib.decompress(base64.b64decode(text, validate=True))
    except (binascii.Error, zlib.error) as broken:
        raise ValueError(f"{text[:40]!r} is not a valid set of offsets") from broken
    bounds, at, number, shift = [], 0, 0, 0
    for octet in data:
        number |= (octet & _LAST7) << shift
        shift += 7
        if not octet & _MORE:
            at += number
            bounds.append(at)
            number, shift = 0, 0
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))


def _varint(number: int) -> Iterator[int]:
    while number > _LAST7:
        yield number & _LAST7 | _MORE
        number >>= 7
    yield number
