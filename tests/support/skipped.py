"""The test run ends with what was left out, and what was missing for it."""

from collections import Counter

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)  # the outermost, so that this comes last
def pytest_terminal_summary(terminalreporter):
    result = yield
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    terminalreporter.section("left out")
    if not reasons:
        terminalreporter.write_line("nothing: every part ran")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} test{'s' if count > 1 else ''}: {reason}")
    return result
