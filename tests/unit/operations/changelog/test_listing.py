"""What differs from the settings that Kafka Streams gives its internal topics; that it finds none on real ones is in tests/streams."""

import pytest

from kops.core.models import Setting
from kops.operations.changelog.listing import differences

DAY = 86_400_000


def settings(**own):
    all_of_them = {
        "cleanup.policy": "delete",
        "retention.ms": "604800000",
        "message.timestamp.type": "CreateTime",
        "min.compaction.lag.ms": "0",
    }
    given = {name.replace("_", "."): value for name, value in own.items()}
    names = {**all_of_them, **given}
    return {name: Setting(name, value, "topic" if name in given else "default") for name, value in names.items()}


@pytest.mark.parametrize(
    ("store_type", "own", "expected"),
    [
        ("key-value", {"cleanup_policy": "compact"}, []),
        ("key-value", {}, ["cleanup.policy is delete; Kafka Streams sets compact"]),
        ("window", {"cleanup_policy": "delete,compact", "retention_ms": str(2 * DAY)}, []),
        (
            "window",
            {"cleanup_policy": "compact,delete", "retention_ms": "3600000"},
            ["retention.ms is 3600000 (1h); Kafka Streams sets at least 86400000 (1d)"],
        ),
        (
            "session",
            {"cleanup_policy": "compact", "retention_ms": "-1"},
            [
                "cleanup.policy is compact; Kafka Streams sets compact,delete",
                "retention.ms is -1; Kafka Streams sets at least 86400000 (1d)",
            ],
        ),
        ("versioned", {"cleanup_policy": "compact", "min_compaction_lag_ms": str(DAY)}, []),
        ("versioned", {"cleanup_policy": "compact"}, ["min.compaction.lag.ms is 0; Kafka Streams sets at least 86400000 (1d)"]),
        ("repartition", {"cleanup_policy": "delete", "retention_ms": "-1", "segment_bytes": "52428800"}, []),
        (
            "suppress",
            {"cleanup_policy": "compact", "message_timestamp_type": "LogAppendTime", "segment_ms": "60000"},
            [
                "message.timestamp.type is LogAppendTime; Kafka Streams sets CreateTime",
                "segment.ms is set to 60000 (1m); Kafka Streams sets none",
            ],
        ),
    ],
)
def test_differences(store_type, own, expected):
    assert [str(each) for each in differences(store_type, settings(**own))] == expected
