r"""Patterns of JSON Schema, which are ECMA 262's: most by RE2 (Arrow's), which takes time in proportion to the text whatever the pattern.

RE2 has ECMA's ``\d``, ``\w``, ``\p{L}`` and ``$``, but neither lookaround nor backreferences: those are left to Python, for a second.
"""

from __future__ import annotations

import re
import signal
import threading
from types import FrameType

from kops.core.extras import SCHEMAS, needs

SECONDS = 1.0
"""For one pattern with lookaround or backreferences on one text."""
_UNICODE_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4}))")
_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z_])")


class UncheckedPattern(ValueError):
    """A pattern that cannot be checked here, or not in time."""


def matches(pattern: str, text: str) -> bool:
    """Tell whether a pattern is found in a text.

    :raises MissingRequirement: without the extra ``schemas``
    :raises UncheckedPattern: when that cannot be told
    """
    needs(SCHEMAS, "a pattern of JSON Schema needs", "pyarrow")
    import pyarrow
    import pyarrow.compute

    escaped = _UNICODE_ESCAPE.sub(lambda found: f"{found[1]}\\x{{{found[2] or found[3]}}}", pattern)
    try:
        column = pyarrow.array([text], pyarrow.string())
        return bool(pyarrow.compute.match_substring_regex(column, escaped)[0].as_py())
    except (pyarrow.ArrowInvalid, UnicodeEncodeError):
        return _by_python(_NAMED_GROUP.sub("(?P<", pattern), text)


def _by_python(pattern: str, text: str) -> bool:
    """Search with Python's ``re``, which may take time without end and hears signals meanwhile, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        raise UncheckedPattern("it has lookaround or backreferences, or is not valid")

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise UncheckedPattern(f"it takes more than {SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        return re.search(pattern, text, re.ASCII) is not None
    except (re.error, OverflowError, RecursionError) as wrong:
        raise UncheckedPattern(f"kops cannot read it ({wrong})") from wrong
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
