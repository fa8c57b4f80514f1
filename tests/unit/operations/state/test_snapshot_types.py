"""What a changelog's settings show of its store, where no state file says it."""

import pytest

from kops.core.models import Setting
from kops.operations.state.snapshot import guessed_type

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("policy", "lag_ms", "kind", "history_ms"),
    [
        ("compact", 0, "key-value", None),
        ("compact", DAY_MS + 60_000, "versioned", 60_000),
        ("compact", 3_600_000, "versioned", None),  # set by somebody: Kafka Streams adds a day
        ("compact,delete", 0, "windowed", None),
    ],
)
def test_guesses(policy, lag_ms, kind, history_ms):
    given = {"cleanup.policy": policy, "min.compaction.lag.ms": str(lag_ms)}
    settings = {name: Setting(name, value, "topic") for name, value in given.items()}
    assert guessed_type(settings) == (kind, history_ms)
