"""The test run ends with what was left out, and what was missing for it.

Long variants (``support/long.py``, ``@pytest.mark.long``) run only with ``KOPS_TEST_LONG=1``, as ``make test-long`` sets it; with
``KOPS_TEST_LONG=only``, as ``make test-long ONLY=1`` sets it, nothing else runs. With ``KOPS_TEST_QUICK=1``, as ``make check`` sets it,
slow ones are left out too, each of which takes longer than hundreds of others: those that start Java, and ``@pytest.mark.slow``.
"""

import os
from collections import Counter

import pytest

from support.long import is_long

LONG, QUICK = "KOPS_TEST_LONG", "KOPS_TEST_QUICK"
_LEFT = pytest.StashKey[Counter[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    tests = [item for item in items if isinstance(item, pytest.Item)]  # lanes collect files first
    left = {item: reason for item in tests if (reason := _reason(item))}
    if left:
        items[:] = [item for item in items if item not in left]
        config.stash.setdefault(_LEFT, Counter()).update(left.values())
        config.hook.pytest_deselected(items=list(left))


def _reason(item):
    """Return why a test is not to run, if it is not."""
    wanted = os.environ.get(LONG)
    if not wanted and is_long(item):
        return "long variants, which `make test-long` runs"
    if wanted == "only" and not is_long(item):
        return "others, which `make test` runs"
    if os.environ.get(QUICK) and ("jdk" in getattr(item, "fixturenames", ()) or item.get_closest_marker("slow")):
        return "slow ones, which `make test` runs"
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)  # the outermost, so that this comes last
def pytest_terminal_summary(terminalreporter):
    result = yield
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    reasons.update(terminalreporter.config.stash.get(_LEFT, {}))
    terminalreporter.section("left out")
    if not reasons:
        terminalreporter.write_line("nothing: every part ran")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} test{'s' if count > 1 else ''}: {reason}")
    return result
