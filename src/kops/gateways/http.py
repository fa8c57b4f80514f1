"""HTTP requests to services, bounded as a whole: in time, in the size of the answer, and in the nesting of its JSON.

The timeouts of ``requests`` bound each wait for the next bytes, so an answer that trickles would never end.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.core.bounded_json import bounded_json
from kops.gateways.threads import in_thread

if TYPE_CHECKING:
    import requests

MOST_BYTES = 64 << 20
"""Of an answer, decompressed. The list of 5,000 connectors with their settings has about 20 MB."""
_CHUNK_BYTES = 16 << 10
"""Decompresses to 16 MB at most."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class AnswerTooLarge(Exception):
    """An answer has more than ``MOST_BYTES``."""

    def __str__(self) -> str:
        return f"the answer has more than {MOST_BYTES >> 20} MiB"


@dataclass(frozen=True)
class HttpAnswer:
    """A complete answer.

    :param headers: their names regardless of case
    """

    status_code: int
    headers: Mapping[str, str]
    content: bytes
    encoding: str | None = None

    @property
    def is_redirect(self) -> bool:
        return self.status_code in _REDIRECTS and "Location" in self.headers

    @property
    def text(self) -> str:
        try:
            return self.content.decode(self.encoding or "utf-8", "replace")
        except LookupError:  # an encoding that Python does not know
            return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Parse the content.

        :raises ValueError: when it is not JSON, or nested too deeply
        """
        return bounded_json(self.content)


def exchange(session: requests.Session, method: str, url: str, *, timeout: float, **settings: Any) -> HttpAnswer:
    """Send a request and read the whole answer.

    :param timeout: seconds, for all of it
    :param settings: for ``requests``
    :raises requests.Timeout: when the answer is not complete in time
    :raises requests.RequestException: when there is none
    :raises AnswerTooLarge: when it exceeds ``MOST_BYTES``
    """
    import requests

    deadline = time.monotonic() + timeout
    try:
        return in_thread(partial(_exchange, session, method, url, deadline, settings)).result(timeout)
    except FutureTimeout as late:
        raise requests.exceptions.ReadTimeout(f"no complete answer within {timeout:g} s") from late


def _exchange(session: requests.Session, method: str, url: str, deadline: float, settings: Mapping[str, Any]) -> HttpAnswer:
    import requests

    left = max(deadline - time.monotonic(), 0.001)
    with session.request(method, url, allow_redirects=False, stream=True, timeout=left, **settings) as answer:
        parts, size = [], 0
        for part in answer.iter_content(_CHUNK_BYTES):
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise AnswerTooLarge
            if time.monotonic() > deadline:  # whoever waited for it has gone
                raise requests.exceptions.ReadTimeout
        return HttpAnswer(answer.status_code, answer.headers, b"".join(parts), answer.encoding)


Shape = Any
"""What JSON must look like: a type, ``object`` for any; a list of one shape; a mapping of keys to shapes, where a key that ends in ``?``
may be absent or null, and the key ``*`` stands for all keys."""


def conforming(value: Any, shape: Shape) -> Any:
    """Return a value that has a shape.

    :raises TypeError: when it has not; says where
    """
    _check(value, shape, "")
    return value


def _check(value: Any, shape: Shape, at: str) -> None:
    kind: Any = type(shape) if isinstance(shape, (list, dict)) else shape
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{at.lstrip('.') or 'the answer'} is not {_NAMES[kind]}")
    if isinstance(shape, list):
        for number, each in enumerate(value):
            _check(each, shape[0], f"{at}[{number}]")
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            name = key.removesuffix("?")
            for each in value if key == "*" else (name,):
                if value.get(each) is not None or name == key:
                    _check(value.get(each), inner, f"{at}.{each}")


_NAMES: Mapping[Any, str] = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}
