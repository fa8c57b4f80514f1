"""Keeps a little of what a process frees, where its C library would give it back and take it again, page by page.

Answers of some megabytes come and go many times a second. By its own rules glibc maps each, or gives back the end of its heap: to read
half a gigabyte then faults 176,000 pages in, and takes half as long again.
"""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt(3)
KEPT_BYTES = 32 << 20  # the most that every glibc takes


@cache
def keep_freed_memory() -> bool:
    """Keep up to ``KEPT_BYTES`` of what this process frees; tell whether its C library does."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(what, KEPT_BYTES) for what in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))
