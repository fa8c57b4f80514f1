"""Input of records to produce: lines, JSON lines as ``records consume -o json`` writes them, and whole files."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from kops.core.errors import UsageProblem
from kops.core.json_values import RepeatedNames, read_json, write_json
from kops.core.models import NewRecord
from kops.core.statefile.fields import nearest
from kops.core.times import parse_datetime
from kops.formats.base import Format
from kops.output.records import STREAM_KEYS

MOST_BYTES = 256 * 1024 * 1024
"""A longer line is not a record: brokers accept 1 MiB by default, and hardly any is configured for more than this."""
_NOT_SENT = ("topic", "offset", "tombstone")
"""What ``records consume -o json`` says about where a record was: another topic and offset take it."""
_FIELDS = tuple(name for name in STREAM_KEYS if name not in _NOT_SENT)
_HINT = 'a line is an object such as {"key": "a", "value": "b"}; "value": null is a tombstone'


@dataclass(frozen=True)
class RecordOverrides:
    """What the command line sets for every record.

    :param key: replaces the key of the input
    :param headers: added after those of the input
    :param timestamp: milliseconds since the epoch, replaces that of the input
    :param partition: replaces that of the input, or the partitioner's choice
    :param keep_partition: use the partition in a JSON line
    :param key_format: of texts, and of JSON values without an encoding of their own
    """

    key: bytes | None = None
    has_key: bool = False
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None
    partition: int | None = None
    keep_partition: bool = True
    key_separator: bytes | None = None
    null: bytes | None = None
    key_format: Format | None = None
    value_format: Format | None = None


Entry = tuple[str, NewRecord]
"""The origin of a record, for error messages, and the record."""
Named = Callable[[str, str], Format]
"""Returns a format by ``key`` or ``value`` and its name."""


def from_lines(name: str, file: BinaryIO, given: RecordOverrides) -> Iterator[Entry]:
    """Yield a record per line, with its bytes unchanged but for the line end.

    :raises UsageProblem: naming the line, if the key separator is missing or a text does not match its format
    """
    for where, line in _lines(name, file):
        key, value = given.key, line
        if given.key_separator is not None:
            before, found, value = line.partition(given.key_separator)
            if not found:
                separator = given.key_separator.decode("utf-8", "replace")
                raise UsageProblem(
                    f"{where}: there is no {separator!r} between key and value", hint="leave --key-separator out for values alone"
                )
            key = _encoded(where, before, given.key_format, given.null)
        yield where, _record(given, key, _encoded(where, value, given.value_format, given.null))


def from_whole(name: str, file: BinaryIO, given: RecordOverrides) -> Iterator[Entry]:
    """Yield one record with the whole file as its value."""
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UsageProblem(f"{name} is larger than any record", hint="leave --input whole out to produce its lines")
    yield name, _record(given, given.key, _encoded(name, data, given.value_format, given.null))


def from_json(name: str, file: BinaryIO, given: RecordOverrides, named: Named) -> Iterator[Entry]:
    """Yield a record per line of JSON.

    Fields of a line: ``key``, ``value`` (required; null is a tombstone), ``key_encoding`` and ``value_encoding`` (``text``, ``base64`` or a
    format), ``headers`` (a list of ``{"key", "value", "encoding"}``, or an object), ``timestamp`` (ISO 8601) or ``timestamp_ms``,
    ``partition``. ``topic``, ``offset`` and ``tombstone``, which ``records consume`` writes too, are not sent; others are errors.

    :raises UsageProblem: naming the line
    """
    for where, line in _lines(name, file):
        if not line.strip():
            continue
        try:
            body = read_json(line.decode())
        except (ValueError, RecursionError) as error:
            raise UsageProblem(f"{where} is not JSON: {error}", hint="--input lines takes any line as a value") from error
        if not isinstance(body, dict):
            raise UsageProblem(f"{where} is not an object", hint=_HINT)
        try:
            _check_fields(body)
            yield where, _from_object(body, given, named)
        except UsageProblem as wrong:
            raise UsageProblem(f"{where}: {wrong.message}", hint=wrong.hint) from wrong


def _from_object(body: Mapping[str, Any], given: RecordOverrides, named: Named) -> NewRecord:
    key = given.key if given.has_key else part_bytes(body.get("key"), body.get("key_encoding"), given.key_format, partial(named, "key"))
    value = part_bytes(body["value"], body.get("value_encoding"), given.value_format, partial(named, "value"))
    timestamp, partition = _timestamp(body), _whole_number(body, "partition")
    return NewRecord(
        key,
        value,
        given.timestamp if given.timestamp is not None else timestamp,
        given.partition if given.partition is not None else partition if given.keep_partition else None,
        (*headers_of(body.get("headers")), *given.headers),
    )


def _check_fields(body: Mapping[str, Any]) -> None:
    """Refuse a line with a field that would not be sent, such as a misspelt one."""
    for name in body:
        if name not in STREAM_KEYS:
            raise UsageProblem(f"it has the field {name}, which a record has not", hint=f"{nearest(name, _FIELDS)}{_HINT}")
    if isinstance(body, RepeatedNames):
        raise UsageProblem("it has a field more than once", hint=_HINT)
    if "value" not in body:
        raise UsageProblem("it has no value", hint=_HINT)
    if body.get("tombstone") is True and body["value"] is not None:
        raise UsageProblem("it is a tombstone and has a value", hint="leave tombstone out, or write null as its value")


def _timestamp(body: Mapping[str, Any]) -> int | None:
    """Return the time in milliseconds since the epoch, from either of its two fields."""
    milliseconds, text = _whole_number(body, "timestamp_ms"), body.get("timestamp")
    if text is None:
        return milliseconds
    if not isinstance(text, str):
        hint = 'write it as "2026-11-20T14:05:00.000Z"; timestamp_ms is for milliseconds since 1970'
        raise UsageProblem(f"timestamp is {write_json(text)[:60]}, which is not a date and time", hint=hint)
    found = parse_datetime(text)
    if milliseconds not in (None, found):
        raise UsageProblem(f"timestamp is {text[:60]}, and timestamp_ms {milliseconds} is another time", hint="leave one of them out")
    return found


def part_bytes(value: Any, encoding: Any, form: Format | None, named: Callable[[str], Format]) -> bytes | None:
    """Return the bytes of a key or value of a JSON line.

    :param encoding: from the line: text, base64 or a format; None: strings are text, everything else is JSON
    :param form: the format from the command line, for lines without an encoding
    :raises UsageProblem: when the value does not match its encoding
    """
    if value is None:
        return None
    if encoding is None and form is not None:
        return form.encode(value)
    if encoding is None:
        encoding = "text" if isinstance(value, str) else "json"
    if encoding in ("text", "base64"):
        if not isinstance(value, str):
            raise UsageProblem(f"{write_json(value)[:60]} is not text, but its encoding is given as {encoding}")
        try:
            return value.encode() if encoding == "text" else base64.b64decode(value, validate=True)
        except (UnicodeEncodeError, binascii.Error) as error:
            raise UsageProblem(f"{value[:60]!r} is not {encoding}: {error}") from error
    return named(str(encoding)).encode(value)


def headers_of(found: Any) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers of a JSON line, in their order.

    :raises UsageProblem: when they are invalid
    """
    if isinstance(found, dict):
        found = [{"key": name, "value": value} for name, value in found.items()]
    if found is None:
        return ()
    try:
        for each in found:
            if unknown := next((name for name in each if name not in ("key", "value", "encoding")), None):
                raise UsageProblem(f"a header has the field {unknown}", hint="a header is an object of key, value and encoding")
        return tuple((str(each["key"]), _header_bytes(each["value"], each.get("encoding"))) for each in found)
    except (TypeError, KeyError, AttributeError) as error:
        hint = 'write them as {"name": "value"} or [{"key": "name", "value": "text", "encoding": "text"}]'
        raise UsageProblem("the headers are none", hint=hint) from error


def _header_bytes(value: Any, encoding: Any) -> bytes | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else write_json(value)
    return part_bytes(text, encoding or "text", None, _no_format)


def _no_format(name: str) -> Format:
    raise UsageProblem(f"a header is text or base64, not {name}")


def _whole_number(body: Mapping[str, Any], name: str) -> int | None:
    found = body.get(name)
    if found is None or (isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**63):
        return found
    raise UsageProblem(f"{name} is {write_json(found)[:60]}, which is not a whole number from 0 on")


def _record(given: RecordOverrides, key: bytes | None, value: bytes | None) -> NewRecord:
    return NewRecord(key, value, given.timestamp, given.partition, given.headers)


def _encoded(where: str, data: bytes, form: Format | None, null: bytes | None) -> bytes | None:
    if null is not None and data == null:
        return None
    if form is None or form.name == "bytes":
        return data
    try:
        return form.encode(form.parse(data.decode()))
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{where} is not UTF-8", hint="leave the format out to send bytes as they are") from error
    except UsageProblem as wrong:
        raise UsageProblem(f"{where}: {wrong.message}", hint=wrong.hint) from wrong


def _lines(name: str, file: BinaryIO) -> Iterable[tuple[str, bytes]]:
    number = 0
    while line := file.readline(MOST_BYTES + 1):
        number += 1
        if len(line) > MOST_BYTES:
            raise UsageProblem(f"line {number} of {name} is longer than any record", hint="--input whole takes a file as one value")
        yield f"line {number}" + (f" of {name}" if name != "-" else ""), line[:-1] if line.endswith(b"\n") else line
