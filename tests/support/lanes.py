"""Several pytests share one run: each takes the next file of its own list that none of the others has taken.

``KOPS_TEST_TAKEN`` names the folder in which they tell each other what they took; without it a pytest runs all that it collects.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

TAKEN = "KOPS_TEST_TAKEN"


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    folder = os.environ.get(TAKEN)
    if not folder or session.config.option.collectonly or session.testsfailed:
        return None  # pytest's own loop
    left = _left(session.items, Path(folder))
    item = next(left, None)
    while item is not None:
        following = next(left, None)  # known before the test ends: fixtures that it needs too are kept
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def _left(items: list[pytest.Item], folder: Path) -> Iterator[pytest.Item]:
    """Return the tests of one file after the other, of those that nobody has taken when their turn comes."""
    by_file: dict[Path, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(item.path, []).append(item)
    for file, tests in by_file.items():
        if _take(folder / str(file).replace(os.sep, "!")):
            yield from tests


def _take(file: Path) -> bool:
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
