"""Several pytests share one run: each takes the next file of its own list that none of the others has taken.

``KOPS_TEST_TAKEN`` names the folder in which they tell each other what they took; without it a pytest runs all that it collects. With it,
a file is read when it is taken: three pytests that read all files first would spend half a minute of the processors' time on that.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

TAKEN = "KOPS_TEST_TAKEN"
FILES = pytest.StashKey[Sequence[pytest.Collector]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> bool | None:
    if not os.environ.get(TAKEN) or session.config.option.collectonly:
        return None  # pytest's own collection
    session.config.stash[FILES] = files = session.perform_collect(genitems=False)
    session.testscollected = len(files)  # where the others took them all, nothing is wrong
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    files = session.config.stash.get(FILES, None)
    if files is None or session.testsfailed:
        return None  # pytest's own loop
    left = _left(session, files)
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


def _left(session: pytest.Session, files: Sequence[pytest.Collector]) -> Iterator[pytest.Item]:
    """Return the tests of one file after the other, of those that nobody has taken when their turn comes."""
    folder = Path(os.environ[TAKEN])
    for file in files:
        if _take(folder / str(file.path).replace(os.sep, "!")):
            tests = list(session.genitems(file))
            session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=tests)
            session.items += tests
            yield from tests


def _take(file: Path) -> bool:
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
