"""Versions of kafka-streams, as far as they affect what a store holds."""

from __future__ import annotations

import re

from kops.core.statefile.fields import Fields

Version = tuple[int, ...]
"""Major, minor and, if stated, patch."""

OLDEST, NEWEST = (2, 4), (4, 4)
"""The oldest and newest release line whose rules kops knows; newer ones are untested, and taken to have those of the newest."""
EXPLICIT_GRACE = (4, 0)
"""From here on the API requires the grace of windows (KIP-633); before, ``TimeWindows.of`` and ``SessionWindows.with`` keep 24 hours."""
RETENTION_OF_WINDOWS = (3, 0)
"""From here on a store keeps size and grace by default; before, one day (``Windows.maintainMs``)."""
SESSION_GAP = (3, 0)
"""From here on a session closes gap and grace after its end; before, after its grace only (KAFKA-12718)."""
VERSIONED_STORES = (3, 5)
"""The first line with versioned stores (KIP-889)."""
GROUPED_UPDATES = (3, 5)
"""From here on, a row that stays in its group updates the aggregate once; before, it is a removal and an addition (KIP-904)."""
NULL_FOREIGN_KEYS = (3, 7)
"""From here on, a row with a null foreign key counts; before, it was skipped (KIP-962)."""
SLIDING_WINDOWS = (2, 8)
"""The first line whose sliding windows are known to behave like those of later ones."""
EXPIRES_EXACTLY = (4, 0)
"""The first line whose RocksDB stores are known never to find a session expired by retention; older ones expire whole segments."""
_REPEATED_VALUES = ((2, 6, 0), (2, 6, 1), (2, 7, 0))
"""Releases whose source tables skip an update that repeats the value (KIP-557, reverted by KAFKA-12508)."""

_TEXT = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:[-.][A-Za-z0-9.-]+)?")


def read_version(streams: Fields) -> Version | None:
    """Read the version of kafka-streams; None if it is left out.

    :raises ConfigError: if it is not a version, or one of before 2.0
    """
    text = streams.text("version")
    if text is None:
        return None
    found = _TEXT.fullmatch(text)
    if found is None or int(found[1]) < OLDEST[0]:
        hint = "such as 2.8.2, 3.9 or 4.4, as the application's jar is called"
        raise streams.wrong("version", f"is {text!r}, which is not a version of kafka-streams that kops knows", hint)
    return tuple(int(part) for part in found.groups() if part is not None)


def line_of(version: Version) -> Version:
    return version[:2]


def repeats_values(version: Version) -> bool:
    """Whether a table of a topic may keep the timestamp of an earlier update with the same value in a release of this line."""
    return any(release[: len(version)] == version for release in _REPEATED_VALUES)
