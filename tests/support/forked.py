"""Kafka Streams as a company may have forked it: Apache's jar, with methods that are not public to applications changed."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

_TASK = "org/apache/kafka/streams/processor/internals/StreamTask.class"
_HEAD, _PUBLIC = 10, 1
_UTF8 = 1
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes of each constant after its tag (JVM specification, 4.4)."""
_TWO_PLACES = (5, 6)


def forked(jar: Path, folder: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """Write a copy of a jar whose classes are changed.

    :param change: from the name and content of a class to its new content
    """
    copy = folder / f"{jar.stem}-acme.jar"
    with zipfile.ZipFile(jar) as theirs, zipfile.ZipFile(copy, "w") as ours:
        for name in theirs.namelist():
            content = theirs.read(name)
            ours.writestr(name, change(name, content) if name.endswith(".class") else content)
    return copy


def renamed(name: str, content: bytes) -> bytes:
    """Give the method by which a task gets records another name, wherever it is called."""
    return content.replace(b"addRecords", b"putRecords")


def hidden(name: str, content: bytes) -> bytes:
    """Make the methods of tasks that schedule punctuators visible to their package alone."""
    if name != _TASK:
        return content
    strings = _strings(content)
    (schedule,) = (at for at, text in strings.items() if text == b"schedule")
    made, changed = content, 0
    for at, text in strings.items():
        public = struct.pack(">HHH", _PUBLIC, schedule, at)
        if text.startswith(b"(") and public in made:
            made, changed = made.replace(public, struct.pack(">HHH", 0, schedule, at)), changed + 1
    assert changed
    return made


def _strings(content: bytes) -> dict[int, bytes]:
    """Return the strings of a class's constants, by their index."""
    (count,) = struct.unpack_from(">H", content, _HEAD - 2)
    found, place, index = {}, _HEAD, 1
    while index < count:
        tag = content[place]
        if tag == _UTF8:
            (size,) = struct.unpack_from(">H", content, place + 1)
            found[index] = content[place + 3 : place + 3 + size]
            place += 3 + size
        else:
            place += 1 + _SIZES[tag]
        index += 2 if tag in _TWO_PLACES else 1
    return found
