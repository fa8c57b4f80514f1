"""The types of stores, by the format of the records in their topics; options and state files use these names."""

from __future__ import annotations

KEY_VALUE = "key-value"  # a table, an aggregate, or a key-value store of a processor
VERSIONED = "versioned"  # a versioned store: each record is a version of its key, valid from the record's time
WINDOW = "window"  # an aggregate of tumbling, hopping or sliding windows, or a window store of a processor
SESSION = "session"  # an aggregate of sessions
JOIN = "join"  # one side of a stream-stream join: all its records, with a sequence so that none hides another
OUTER_JOIN = "outer-join"  # what has found no partner in a left or outer stream-stream join
SUPPRESS = "suppress"  # changes that suppress() holds back
JOIN_BUFFER = "join-buffer"  # stream records that wait for a table, in a join with a grace period
SUBSCRIPTION = "subscription"  # who asks for which key of the other table, in a foreign-key join
# Internal topics that are not changelogs of Kafka Streams:
REPARTITION = "repartition"  # records on their way to the task of their new key
GROUPED_TABLE = "grouped-table"  # changes of a table's rows on their way to a grouped table
SUBSCRIPTION_REGISTRATION = "subscription-registration"  # subscriptions on their way to the other table of a foreign-key join
SUBSCRIPTION_RESPONSE = "subscription-response"  # answers to them on their way back
FAUST = "faust"  # a Faust table
FAUST_WINDOW = "faust-window"  # a windowed Faust table

ALL_TYPES = (
    *(KEY_VALUE, VERSIONED, WINDOW, SESSION, JOIN, OUTER_JOIN, SUPPRESS, JOIN_BUFFER, SUBSCRIPTION),
    *(REPARTITION, GROUPED_TABLE, SUBSCRIPTION_REGISTRATION, SUBSCRIPTION_RESPONSE, FAUST, FAUST_WINDOW),
)
