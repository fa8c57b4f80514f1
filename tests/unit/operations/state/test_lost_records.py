import pytest

from kops.operations.state.lost_records import losses_text

DELETED = ", which its settings delete (cleanup.policy=compact,delete)"
KEYS = "keys that nothing has written again since are missing there"


@pytest.mark.parametrize(
    ("starts", "policy", "windowed", "text"),
    [
        ({0: 0, 1: 0}, "compact", False, ""),
        ({0: 0, 1: 7}, "compact", False, f"partition 1 of t has lost records: {KEYS}"),
        ({0: 3, 1: 7}, "compact", True, f"partitions 0, 1 of t have lost records: {KEYS}"),
        ({0: 3}, "compact,delete", True, ""),
        (
            {0: 3},
            "compact,delete",
            False,
            f"partition 0 of t has lost records{DELETED}: {KEYS}",
        ),
        ({0: 0}, "compact,delete", False, ""),
    ],
)
def test_losses_are_named_unless_they_are_windows_that_expired(starts, policy, windowed, text):
    assert losses_text("t", starts, policy, windowed=windowed) == text
