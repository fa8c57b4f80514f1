"""The formats of ``kops.formats.streams`` beside the library's own: cases for each, and how both sides are asked."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kops.core.models import TopicPartition
from kops.formats.streams import (
    foreign_keys,
    join_buffers,
    offset_metadata,
    positions,
    session_keys,
    stream_joins,
    suppression,
    table_changes,
    window_keys,
)
from kops.formats.streams.foreign_keys import CombinedKey, Instruction, Response, Subscription
from kops.formats.streams.join_buffers import BufferKey
from kops.formats.streams.offset_metadata import OffsetMetadata
from kops.formats.streams.session_keys import SessionKey
from kops.formats.streams.stream_joins import JoinSideKey, JoinSideValue
from kops.formats.streams.suppression import BufferedChange, RecordContext
from kops.formats.streams.table_changes import TableChange
from kops.formats.streams.window_keys import WindowKey
from support.streams import Oracle
from support.streams_encoders import (
    encode_buffer_key,
    encode_combined_key,
    encode_join_side_key,
    encode_join_side_values,
    encode_position,
    encode_response,
    encode_session_key,
    encode_subscription,
    encode_suppressed,
    encode_table_change,
    encode_window_key,
    suppressed_headers,
)


@dataclass(frozen=True)
class Form:
    """One format on both sides.

    :param name: of the library's writer in ``FormatCalls.java``; its reader has ``_of`` behind it
    :param arguments: what the library's writer takes for a case
    :param answer: what the library's reader answers for what kops decoded; the arguments when left out
    :param exact: kops refuses what the library refuses, and nothing else; False: kops may refuse more
    :param also: what the library's reader takes beside the bytes
    :param ordered: False: it is a map to the library, so the order of its reader's answer says nothing
    """

    name: str
    cases: SearchStrategy[Any]
    arguments: Callable[[Any], list[Any]]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    answer: Callable[[Any], Any] | None = None
    exact: bool = True
    also: tuple[Any, ...] = ()
    ordered: bool = True

    def answered(self, decoded: Any) -> Any:
        """Return what the library's reader answers for what kops decoded."""
        return self.sorted((self.answer or self.arguments)(decoded))

    def sorted(self, answer: Any) -> Any:
        """Return an answer in an order that two of them can be compared in."""
        return answer if self.ordered else sorted(answer)

    def written(self, library: Oracle, cases: Sequence[Any]) -> list[Any]:
        """Ask the library's writer."""
        return library.formats(self.name, [self.arguments(case) for case in cases])

    def read(self, library: Oracle, data: Sequence[bytes]) -> list[Any]:
        """Ask the library's reader."""
        return library.formats(f"{self.name}_of", [[text(each), *self.also] for each in data])


def generated(strategy: SearchStrategy[Any], count: int) -> list[Any]:
    """Return cases of a strategy, to be asked for in one batch."""
    found: list[Any] = []

    @settings(max_examples=count, database=None, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(case: Any) -> None:
        found.append(case)

    collect()
    return found


def text(data: bytes | None) -> str | None:
    """Return bytes as the oracle takes and gives them."""
    return None if data is None else base64.b64encode(data).decode()


def header_cells(headers: suppression.Headers) -> list[list[str | None]]:
    """Return headers as the oracle takes and gives them."""
    return [[name, text(value)] for name, value in headers]


def context_cells(context: RecordContext | None) -> list[Any]:
    """Return where a record came from, as the oracle takes and gives it."""
    assert context is not None
    return [context.timestamp_ms, context.offset, context.topic, context.partition, header_cells(context.headers)]


def _change(change: BufferedChange) -> list[Any]:
    return [text(change.new), text(change.old), text(change.prior), change.buffer_time_ms, context_cells(change.context)]


KEYS = st.binary(max_size=20) | st.text(max_size=12).map(str.encode) | st.just(b"") | st.binary(min_size=300, max_size=300)
VALUES = KEYS | st.integers(0, 2**63 - 1).map(lambda number: number.to_bytes(8, "big"))
TIMES = st.integers(0, 2**63 - 1) | st.integers(0, 3) | st.integers(1_500_000_000_000, 2_000_000_000_000)
STARTS = TIMES.filter(lambda time: time < window_keys.NO_END)
ANY_TIMES = TIMES | st.integers(-(2**63), -1)
SEQUENCES = st.integers(0, 2**31 - 1) | st.integers(0, 3)
INTS = st.integers(-(2**31), 2**31 - 1)
HASHES = st.binary(min_size=16, max_size=16) | st.none()
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
HEADERS = st.lists(st.tuples(NAMES, VALUES | st.none()), max_size=3).map(tuple)
CONTEXTS = st.builds(RecordContext, ANY_TIMES, ANY_TIMES, NAMES, INTS, HEADERS)
CHANGES = st.builds(BufferedChange, VALUES | st.none(), VALUES | st.none(), VALUES | st.none(), ANY_TIMES, CONTEXTS)
SAME_PRIOR = st.builds(
    lambda change: BufferedChange(change.new, change.prior, change.prior, change.buffer_time_ms, change.context), CHANGES
)

FORMS = (
    Form(
        "window_key",
        st.builds(WindowKey, KEYS, STARTS, SEQUENCES),
        lambda key: [text(key.key), key.start_ms, key.sequence],
        encode_window_key,
        window_keys.decode,
    ),
    Form(
        "topic_window_key",
        st.builds(WindowKey, KEYS, STARTS, st.none()),
        lambda key: [text(key.key), key.start_ms],
        encode_window_key,
        window_keys.decode_without_sequence,
    ),
    Form(
        "session_key",
        st.builds(lambda key, one, other: SessionKey(key, *sorted((one, other))), KEYS, TIMES, TIMES),
        lambda key: [text(key.key), key.start_ms, key.end_ms],
        encode_session_key,
        session_keys.decode,
    ),
    Form(
        "join_key",
        st.builds(JoinSideKey, KEYS, ANY_TIMES, st.booleans()),
        lambda key: [text(key.key), key.timestamp_ms, key.is_left],
        encode_join_side_key,
        stream_joins.decode_key,
        exact=False,
    ),
    Form(
        "join_values",
        st.lists(st.builds(JoinSideValue, VALUES, st.booleans()), max_size=4).map(tuple),
        lambda values: [[[text(each.value), each.is_left] for each in values]],
        encode_join_side_values,
        stream_joins.decode_values,
        lambda values: [[text(each.value), each.is_left] for each in values],
        exact=False,
    ),
    Form(
        "buffer_key",
        st.builds(BufferKey, KEYS, ANY_TIMES, SEQUENCES),
        lambda key: [text(key.key), key.timestamp_ms, key.sequence],
        encode_buffer_key,
        join_buffers.decode_key,
        exact=False,
    ),
    Form(
        "suppressed",
        CHANGES | SAME_PRIOR,
        _change,
        encode_suppressed,
        lambda data: suppression.decode(data, suppressed_headers(3)),
        also=(header_cells(suppressed_headers(3)),),
    ),
    Form(
        "combined_key",
        st.builds(CombinedKey, KEYS, KEYS),
        lambda key: [text(key.foreign_key), text(key.primary_key)],
        encode_combined_key,
        foreign_keys.decode_key,
    ),
    Form(
        "subscription",
        st.builds(Subscription, KEYS, st.sampled_from(Instruction), HASHES, INTS | st.none()),
        lambda asked: [text(asked.primary_key), int(asked.instruction), text(asked.value_hash), asked.primary_partition],
        encode_subscription,
        foreign_keys.decode_subscription,
    ),
    Form(
        "response",
        st.builds(Response, VALUES.filter(len) | st.none(), HASHES),
        lambda answer: [text(answer.value), text(answer.value_hash)],
        encode_response,
        foreign_keys.decode_response,
    ),
    Form(
        "change",
        st.builds(TableChange, VALUES, VALUES) | st.builds(TableChange, VALUES, st.none()) | st.builds(TableChange, st.none(), VALUES),
        lambda change: [text(change.new), text(change.old)],
        encode_table_change,
        table_changes.decode,
        lambda change: [text(change.new), text(change.old), change.is_latest is not False],
    ),
    Form(
        "position",
        st.dictionaries(st.builds(TopicPartition, NAMES.filter(len), SEQUENCES), TIMES, max_size=1),
        lambda position: [[[part.topic, part.partition, offset] for part, offset in position.items()]],
        encode_position,
        positions.decode,
        lambda position: [[part.topic, part.partition, offset] for part, offset in position.items()],
        ordered=False,
    ),
    Form(
        "offset_metadata",
        st.builds(OffsetMetadata, ANY_TIMES, st.dictionaries(NAMES, ANY_TIMES, max_size=1)),
        lambda metadata: [metadata.partition_time_ms, [list(each) for each in metadata.last_emissions_ms.items()]],
        lambda metadata: base64.b64decode(offset_metadata.encode(metadata)),
        lambda data: offset_metadata.decode(base64.b64encode(data).decode()),
        exact=False,
    ),
)
