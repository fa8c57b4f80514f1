"""A format for UUIDs as 16 big-endian bytes, as databases and Java's ``ByteBuffer`` write them."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from kops.plugins.api import UndecodableRecord, UsageProblem

_BYTES = 16


class UuidBinary:
    """A UUID as 16 bytes, shown as text."""

    name: ClassVar[str] = "uuid-binary"

    def encode(self, value: Any) -> bytes | None:
        return None if value is None else _parsed(value).bytes

    def parse(self, text: str) -> str:
        """Return the text as ``decode`` would give it.

        :raises UsageProblem: when it is not the text of a UUID
        """
        return str(_parsed(text))

    def decode(self, data: bytes) -> str:
        """Return the text.

        :raises UndecodableRecord: when there are not 16 bytes
        """
        if len(data) != _BYTES:
            raise UndecodableRecord(f"a binary UUID has {_BYTES} bytes, this has {len(data)}")
        return str(uuid.UUID(bytes=data))

    def show(self, value: Any) -> Any:
        return value


def _parsed(text: Any) -> uuid.UUID:
    try:
        return uuid.UUID(str(text))
    except ValueError as wrong:
        raise UsageProblem(f"{text!r} is not a UUID") from wrong
