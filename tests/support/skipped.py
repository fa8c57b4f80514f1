"""The test run ends with what was left out, and what was missing for it.

Long variants (``support/long.py``, ``@pytest.mark.long``) run only with ``KOPS_TEST_LONG=1``, as ``make test-long`` sets it.
"""

import os
from collections import Counter

import pytest

from support.long import is_long

LONG = "KOPS_TEST_LONG"
_LEFT = pytest.StashKey[int]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if os.environ.get(LONG):
        return
    long = {item for item in items if is_long(item)}
    if long:
        items[:] = [item for item in items if item not in long]
        config.stash[_LEFT] = config.stash.get(_LEFT, 0) + len(long)
        config.hook.pytest_deselected(items=list(long))


@pytest.hookimpl(wrapper=True, tryfirst=True)  # the outermost, so that this comes last
def pytest_terminal_summary(terminalreporter):
    result = yield
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    if long := terminalreporter.config.stash.get(_LEFT, 0):
        reasons["long variants, which `make test-long` runs"] += long
    terminalreporter.section("left out")
    if not reasons:
        terminalreporter.write_line("nothing: every part ran")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} test{'s' if count > 1 else ''}: {reason}")
    return result
