"""What a state file says of a changelog that is read."""

import pytest

from kops.core.errors import UsageProblem
from kops.operations.changelog.detect import StoreSpec, spec_in

FILE = """
application: app
streams: {version: "4.3"}
stores:
  totals:
    from: {topic: in, key: long, value: double}
    aggregate: {sum: value, as: double}
  per-minute:
    type: window
    from: {topic: in, key: string, value: string}
    window: {size: 1m, grace: 0s}
    aggregate: {count: true}
  visits:
    type: session
    from: {topic: in, key: string, value: string}
    window: {gap: 30s, grace: 0s}
    aggregate: {count: true}
  homes:
    type: versioned
    history_retention: 1h
    from: {topic: in, key: string, value: string}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "state.yaml"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("totals", StoreSpec("key-value", "long", "double", None)),
        ("per-minute", StoreSpec("window", "string", "long", 60_000)),
        ("visits", StoreSpec("session", "string", "long", None)),
        ("homes", StoreSpec("versioned", "string", "string", None)),
    ],
)
def test_what_it_says(file, store, said):
    assert spec_in(file, f"app-{store}-changelog") == said


def test_a_changelog_that_it_does_not_have(file):
    with pytest.raises(UsageProblem, match="has no store whose changelog is app-other-changelog") as wrong:
        spec_in(file, "app-other-changelog")
    assert "app-totals-changelog" in wrong.value.hint
