"""How much memory this machine has left, or what this process may have of it."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_LIMITS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
"""Of control groups, version 2 and 1, as a container sees its own."""


def free_memory(proc: Path = Path("/proc"), groups: Path = _CGROUP) -> int:
    """Return how many bytes programs can take without swapping; where the system does not say it, half of what there is.

    What a container may still take counts files that its system has cached as taken, so it may be more.
    """
    free = _available(proc / "meminfo")
    if free is None:
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    for most, taken in _LIMITS:
        limit, used = _number(groups / most), _number(groups / taken)
        if limit is not None and used is not None:
            free = min(free, max(0, limit - used))
    return free


def _available(file: Path) -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in file.read_text(encoding="ascii").splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max": there is no limit
        return None
