"""The types of stores, by the format of the records in their topics; options and state files use these names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

KEY_VALUE = "key-value"
VERSIONED = "versioned"
WINDOW = "window"
SESSION = "session"
JOIN = "join"
OUTER_JOIN = "outer-join"
SUPPRESS = "suppress"
JOIN_BUFFER = "join-buffer"
SUBSCRIPTION = "subscription"
GROUPED_TABLE = "grouped-table"
SUBSCRIPTION_REGISTRATION = "subscription-registration"
SUBSCRIPTION_RESPONSE = "subscription-response"
REPARTITION = "repartition"
FAUST = "faust"
FAUST_WINDOW = "faust-window"

ALL_TYPES: Mapping[str, str] = MappingProxyType(
    {
        KEY_VALUE: "a table, an aggregate, or a key-value store of a processor",
        VERSIONED: "a versioned store: each record is a version of its key, valid from the record's time",
        WINDOW: "an aggregate of tumbling, hopping or sliding windows, or a window store of a processor",
        SESSION: "an aggregate of sessions",
        JOIN: "one side of a stream-stream join: all its records, with a sequence so that none hides another",
        OUTER_JOIN: "what has found no partner in a left or outer stream-stream join",
        SUPPRESS: "changes that suppress() holds back",
        JOIN_BUFFER: "stream records that wait for a table, in a join with a grace period",
        SUBSCRIPTION: "who asks for which key of the other table, in a foreign-key join",
        # Up to here stores of Kafka Streams that have a changelog, from here on other internal topics.
        REPARTITION: "records on their way to the task of their new key",
        GROUPED_TABLE: "changes of a table's rows on their way to a grouped table",
        SUBSCRIPTION_REGISTRATION: "subscriptions on their way to the other table of a foreign-key join",
        SUBSCRIPTION_RESPONSE: "answers to them on their way back",
        FAUST: "a Faust table",
        FAUST_WINDOW: "a windowed Faust table",
    }
)
"""What the topics of each type hold, in words."""
