"""Files read as text or JSON: one that cannot be used is refused with its name, the place and the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kops.core.bounded_json import MOST_DEPTH, is_too_deep
from kops.core.errors import ConfigError

LARGEST = 1 << 28
"""Bytes of the largest file that is read as a whole; a plan of a million offsets has 100 MB."""
_BOM = b"\xef\xbb\xbf"


def read_bytes(file: Path, *, what: str = "", hint: str | None = None, largest: int = LARGEST) -> bytes:
    """Return the content of a file without a byte order mark of UTF-8.

    :param what: what the file is, for messages: ``state file``
    :param largest: bytes
    :raises ConfigError: if it cannot be read, or is larger
    """
    named = f"the {what} {file}" if what else str(file)
    try:
        with file.open("rb") as stream:
            data = stream.read(largest + 1)
    except (OSError, ValueError) as error:  # a ValueError: a zero byte in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"cannot read {named}: {reason}", hint=hint, file=str(file)) from error
    if len(data) > largest:
        raise ConfigError(f"{named} has more than {largest >> 20} MiB", hint=hint, file=str(file))
    return data.removeprefix(_BOM)


def is_absent(error: ConfigError) -> bool:
    """Whether a file could not be read because there is none."""
    return isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError))


def read_text(file: Path, *, what: str = "", hint: str | None = None, largest: int = LARGEST) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark; line ends stay as they are.

    :raises ConfigError: see :func:`read_bytes`; also if it is not UTF-8
    """
    data = read_bytes(file, what=what, hint=hint, largest=largest)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"{file} is not UTF-8: {error.reason} at byte {error.start}, line {line}"
        raise ConfigError(message, hint="save it as UTF-8", file=str(file)) from None  # the codec's error holds all bytes, perhaps secrets


def read_json(file: Path, *, what: str = "", hint: str | None = None, as_written: bool = False) -> Any:
    """Return the JSON of a file; see :func:`read_text` and :func:`parse_json`."""
    return parse_json(read_text(file, what=what, hint=hint), str(file), hint=hint, as_written=as_written)


def parse_json(text: str, place: str, *, hint: str | None = None, as_written: bool = False) -> Any:
    """Return the value of a JSON text.

    :param place: where the text is from, for messages
    :param as_written: return numbers, true and false as the texts that they are written as
    :raises ConfigError: naming the place, if it is not JSON (RFC 8259), gives a key twice, or is nested deeper than ``MOST_DEPTH``
    """
    words: dict[str, Any] = {"parse_int": str, "parse_float": str} if as_written else {}
    try:
        body = json.loads(text, object_pairs_hook=_without_twice, parse_constant=_no_constant, **words)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{place} is not JSON: {error}", hint=hint, file=place) from None  # it holds the text, perhaps secrets
    except ValueError as error:
        raise ConfigError(f"{place} is not JSON that can be read: {error}", hint=hint, file=place) from None
    except RecursionError as error:
        raise _too_deep(place, hint) from error
    if text.count("[") + text.count("{") > MOST_DEPTH and is_too_deep(body):
        raise _too_deep(place, hint)
    return _words(body) if as_written else body


def _too_deep(place: str, hint: str | None) -> ConfigError:
    return ConfigError(f"{place} is not JSON that can be read: it is nested more than {MOST_DEPTH} levels deep", hint=hint, file=place)


def _without_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice} is given twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _words(body: Any) -> Any:
    if isinstance(body, bool):
        return "true" if body else "false"
    if isinstance(body, dict):
        return {name: _words(value) for name, value in body.items()}
    return [_words(value) for value in body] if isinstance(body, list) else body
