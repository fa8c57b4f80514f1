"""Makes a process keep some freed memory, which its C library would otherwise return to the system and request again, page by page.

Answers of some megabytes come and go many times per second, and glibc maps each of them again. Measured with Kafka 4.3, 320 MB of records
of 1 KB: batches copied in 0.40 s of CPU with 42,000 page faults, without this 0.60 s and 146,000; decoded in 0.84 s, without this 1.01 s.
"""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt(3)
KEPT_BYTES = 32 << 20  # the maximum that every glibc accepts


@cache
def keep_freed_memory() -> bool:
    """Keep up to ``KEPT_BYTES`` of the memory that this process frees; return whether its C library supports that."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(what, KEPT_BYTES) for what in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))
