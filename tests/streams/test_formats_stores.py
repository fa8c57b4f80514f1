"""Topics that the real Kafka Streams wrote, for every type of store: taken apart, written again to the same bytes, and guessed right."""

import random
from dataclasses import replace

import pytest

from kops.core.records.models import Record as Found
from kops.formats.streams import (
    foreign_keys,
    join_buffers,
    session_keys,
    stream_joins,
    suppression,
    table_changes,
    window_keys,
)
from kops.formats.streams import store_types as types
from kops.formats.streams.detection import HIGH, LOW, MEDIUM, NAMED, detect
from kops.formats.streams.join_buffers import BufferedRecord
from support.programs import Record
from support.streams import encoded
from support.streams_encoders import (
    encode_buffer_key,
    encode_buffered_record,
    encode_combined_key,
    encode_join_side_key,
    encode_join_side_values,
    encode_response,
    encode_session_key,
    encode_subscription,
    encode_suppressed,
    encode_table_change,
    encode_window_key,
    suppressed_headers,
)

pytestmark = pytest.mark.streams

START = 1_700_000_000_000
DAY = 86_400_000
APPLICATION = "app"
KEYS = ["a", "b", "ключ", "", "a key as long as many"]
VALUES = ["x", "yy", "zebra", "", "q", "x\u0000", "\u0001\u0002"]
TOPICS = {
    "plain": {"s-changelog": types.KEY_VALUE},
    "count": {"s-changelog": types.KEY_VALUE},
    "table": {"s-changelog": types.KEY_VALUE},
    "versioned": {"s-changelog": types.VERSIONED},
    "tumbling": {"s-changelog": types.WINDOW},
    "hopping": {"s-changelog": types.WINDOW},
    "sliding": {"s-changelog": types.WINDOW},
    "session": {"s-changelog": types.SESSION},
    "join-inner": {
        "KSTREAM-JOINTHIS-0000000004-store-changelog": types.JOIN,
        "KSTREAM-JOINOTHER-0000000005-store-changelog": types.JOIN,
    },
    "join-left": {
        "KSTREAM-JOINTHIS-0000000004-store-changelog": types.JOIN,
        "KSTREAM-OUTEROTHER-0000000005-store-changelog": types.JOIN,
        "KSTREAM-OUTERSHARED-0000000004-store-changelog": types.OUTER_JOIN,
    },
    "join-outer": {
        "KSTREAM-OUTERTHIS-0000000004-store-changelog": types.JOIN,
        "KSTREAM-OUTEROTHER-0000000005-store-changelog": types.JOIN,
        "KSTREAM-OUTERSHARED-0000000004-store-changelog": types.OUTER_JOIN,
    },
    "suppress": {"s-changelog": types.WINDOW, "KTABLE-SUPPRESS-STATE-STORE-0000000003-changelog": types.SUPPRESS},
    "suppress-session": {"s-changelog": types.SESSION, "held-store-changelog": types.SUPPRESS},
    "suppress-table": {"s-changelog": types.KEY_VALUE, "KTABLE-SUPPRESS-STATE-STORE-0000000003-changelog": types.SUPPRESS},
    "foreign-key": {
        "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic": types.SUBSCRIPTION_REGISTRATION,
        "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic": types.SUBSCRIPTION_RESPONSE,
        "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010-changelog": types.SUBSCRIPTION,
        "in-STATE-STORE-0000000003-changelog": types.KEY_VALUE,
        "other-STATE-STORE-0000000000-changelog": types.KEY_VALUE,
        "s-changelog": types.KEY_VALUE,
    },
    "grouped-table": {
        "in-STATE-STORE-0000000000-changelog": types.KEY_VALUE,
        "s-repartition": types.GROUPED_TABLE,
        "s-changelog": types.KEY_VALUE,
    },
    "grace-join": {"s-changelog": types.VERSIONED, "waiting-Buffer-changelog": types.JOIN_BUFFER},
    "repartition": {"s-repartition": types.REPARTITION, "s-changelog": types.KEY_VALUE},
}
"""What each program of ``StoreTypes.java`` has, by topic."""
WITH_OTHER_KEYS = (
    ("grouped-table", "s-changelog"),
    ("grouped-table", "s-repartition"),
    ("repartition", "s-changelog"),
    ("repartition", "s-repartition"),
    ("foreign-key", "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic"),
    ("suppress", "KTABLE-SUPPRESS-STATE-STORE-0000000003-changelog"),
    ("suppress-session", "held-store-changelog"),
)
"""Topics whose keys are not those of the input, or are those of a windowed table."""
WITH_TWO_TOPICS = ("join-inner", "join-left", "join-outer", "foreign-key", "grace-join")


def inputs(program: str, count: int = 60) -> list[tuple[str, Record]]:
    """Return records with shuffled times, null values and headers."""
    chance = random.Random(program)
    found = []
    for at in range(count):
        topic = chance.choice(["in", "other"]) if program in WITH_TWO_TOPICS else "in"
        key, value = chance.choice(KEYS), None if chance.random() < 0.1 else chance.choice(VALUES)
        if program == "foreign-key" and topic == "other":
            key = chance.choice("xyzq")
        time = START + at * 4 - chance.randrange(9)
        found.append((topic, Record(key.encode(), None if value is None else value.encode(), time, (("h", b"1"),))))
    return found


@pytest.fixture(scope="module", params=["newest", "4.1"])
def library(request):
    return request.getfixturevalue("oracle" if request.param == "newest" else "older_oracle")


@pytest.fixture(scope="module")
def written(library):
    """Run a program once: records and settings, by topic without the application's name."""
    done = {}

    def run(program):
        if program not in done:
            spec = {"application": APPLICATION, "store_type": program, "from": {"topic": "in"}}
            piped = [{**encoded(record), "topic": topic} for topic, record in inputs(program)]
            records, settings = library.store_type(spec, piped)
            done[program] = {
                topic.removeprefix(f"{APPLICATION}-"): (found(topic, each), {"min.compaction.lag.ms": "0", **settings.get(topic, {})})
                for topic, each in records.items()
            }
        return done[program]

    return run


def found(topic, records):
    return [Found(topic, 0, at, each.timestamp, each.key, each.value, each.headers) for at, each in enumerate(records)]


@pytest.mark.parametrize("program", TOPICS)
def test_every_topic_is_guessed_right_and_each_guess_can_be_overruled(written, program):
    topics = written(program)
    assert set(topics) == set(TOPICS[program])
    for topic, kind in TOPICS[program].items():
        records, settings = topics[topic]
        guess = detect(records[0].topic, settings, records)
        assert (guess.type, guess.confidence in (HIGH, MEDIUM)) == (kind, True), (topic, guess)
        assert guess.reasons
        assert kind not in guess.alternatives
        assert detect(records[0].topic, settings, records, named=kind).confidence == NAMED
        assert detect(records[0].topic, settings, records, named=kind).reasons == (), (topic, guess)
        other = types.SESSION if kind == types.WINDOW else types.WINDOW
        assert detect(records[0].topic, settings, records, named=other).reasons, "nothing speaks against a wrong type"


@pytest.mark.parametrize("program", TOPICS)
def test_every_topic_is_guessed_right_under_another_name(written, program):
    """Stores have the names that programs give them; bytes and settings are enough, but for topics on the way."""
    for topic, kind in TOPICS[program].items():
        if not topic.endswith("-changelog"):
            continue
        records, settings = written(program)[topic]
        guess = detect("mine-changelog", settings, records)
        assert (guess.type, guess.confidence) == (kind, HIGH), (topic, guess)


@pytest.mark.parametrize("program", TOPICS)
def test_every_record_is_taken_apart_and_written_again(written, program):
    keys = {record.key for _, record in inputs(program)}
    for topic, kind in TOPICS[program].items():
        records, _ = written(program)[topic]
        assert len(records) > 10
        for record in records:
            assert WRITE_AGAIN[kind](record) == (record.key, record.value), (topic, record)
            if (program, topic) not in WITH_OTHER_KEYS:
                assert INNER_KEY.get(kind, lambda key: key)(record.key) in keys, (topic, record)


def _subscription(record):
    asked = record.value and encode_subscription(foreign_keys.decode_subscription(record.value))
    return encode_combined_key(foreign_keys.decode_key(record.key)), asked


def _suppressed(record):
    if record.value is None:
        return record.key, None
    assert record.headers == suppressed_headers(3)
    return record.key, encode_suppressed(suppression.decode(record.value, record.headers))


def _waiting(record):
    key = encode_buffer_key(join_buffers.decode_key(record.key))
    if record.value is None:
        return key, None
    buffered = join_buffers.decode_value(record.value)
    assert isinstance(buffered, BufferedRecord)
    return key, encode_buffered_record(buffered)


def _as_it_is(record):
    return record.key, record.value


INNER_KEY = {
    types.WINDOW: lambda key: window_keys.decode(key).key,
    types.JOIN: lambda key: window_keys.decode(key).key,
    types.SESSION: lambda key: session_keys.decode(key).key,
    types.OUTER_JOIN: lambda key: stream_joins.decode_key(key).key,
    types.JOIN_BUFFER: lambda key: join_buffers.decode_key(key).key,
    types.SUBSCRIPTION: lambda key: foreign_keys.decode_key(key).primary_key,
}
WRITE_AGAIN = {
    types.KEY_VALUE: _as_it_is,
    types.VERSIONED: _as_it_is,
    types.REPARTITION: _as_it_is,
    types.WINDOW: lambda record: (encode_window_key(window_keys.decode(record.key)), record.value),
    types.JOIN: lambda record: (encode_window_key(window_keys.decode(record.key)), record.value),
    types.SESSION: lambda record: (encode_session_key(session_keys.decode(record.key)), record.value),
    types.OUTER_JOIN: lambda record: (
        encode_join_side_key(stream_joins.decode_key(record.key)),
        record.value and encode_join_side_values(stream_joins.decode_values(record.value)),
    ),
    types.SUPPRESS: _suppressed,
    types.JOIN_BUFFER: _waiting,
    types.SUBSCRIPTION: _subscription,
    types.SUBSCRIPTION_REGISTRATION: lambda record: (
        record.key,
        record.value and encode_subscription(foreign_keys.decode_subscription(record.value)),
    ),
    types.SUBSCRIPTION_RESPONSE: lambda record: (
        record.key,
        record.value and encode_response(foreign_keys.decode_response(record.value)),
    ),
    types.GROUPED_TABLE: lambda record: (record.key, encode_table_change(table_changes.decode(record.value))),
}


def test_without_records_only_the_settings_speak(written):
    _, settings = written("tumbling")["s-changelog"]
    guess = detect("mine-changelog", settings, [])
    assert (guess.type, guess.confidence) == (types.WINDOW, LOW)
    assert types.SESSION in guess.alternatives
    assert "it has no records that could be looked at" in guess.reasons


def test_some_damaged_records_do_not_change_a_guess(written):
    records, settings = written("hopping")["s-changelog"]
    damaged = [*records, *[records[0]._replace(key=b"poison", value=b"poison") for _ in range(len(records) // 20)]]
    guess = detect("mine-changelog", settings, damaged)
    assert (guess.type, guess.confidence) == (types.WINDOW, HIGH)
    assert any(f"of {len(damaged)}" in reason for reason in guess.reasons)


def test_the_buffer_of_suppress_holds_windows_until_their_end(written):
    stores = (("suppress", "KTABLE-SUPPRESS-STATE-STORE-0000000003", types.WINDOW), ("suppress-session", "held-store", types.SESSION))
    for program, store, kind in stores:
        records, _ = written(program)[f"{store}-changelog"]
        kept, _ = written(program)["s-changelog"]
        held = [record for record in records if record.value is not None]
        assert held
        for record in held:
            change = suppression.decode(record.value, record.headers)
            if kind == types.WINDOW:
                window = window_keys.decode_without_sequence(record.key)
                assert change.buffer_time_ms == window_keys.end_of(window.start_ms, 10)
                assert encode_window_key(replace(window, sequence=0)) in {each.key for each in kept}
            else:
                assert change.buffer_time_ms == session_keys.decode(record.key).end_ms
                assert record.key in {each.key for each in kept}


def test_join_stores_carry_the_headers_of_their_input_from_4_3_on(library, written):
    records, _ = written("join-inner")["KSTREAM-JOINTHIS-0000000004-store-changelog"]
    newer = library.version >= "4.3"
    assert {record.headers for record in records} == {(("h", b"1"),) if newer else ()}
    said = detect(records[0].topic, {}, records).reasons
    assert any("records have headers: Kafka Streams 4.3" in reason for reason in said) == newer


def test_stores_with_headers_are_read_as_those_without(oracle):
    """``dsl.store.format=HEADERS`` of 4.3: tombstones and subscriptions carry headers, values of tables do not."""
    for program in ("table", "session", "foreign-key", "tumbling", "join-left"):
        spec = {"application": APPLICATION, "store_type": program, "from": {"topic": "in"}, "config": {"dsl.store.format": "HEADERS"}}
        topics, settings = oracle.store_type(spec, [{**encoded(record), "topic": topic} for topic, record in inputs(program)])
        for topic, kind in TOPICS[program].items():
            name = f"{APPLICATION}-{topic}"
            records = found(name, topics[name])
            assert detect(name, {"min.compaction.lag.ms": "0", **settings.get(name, {})}, records).type == kind
            assert all(WRITE_AGAIN[kind](record) == (record.key, record.value) for record in records)
            with_headers = {record.value is None for record in records if record.headers}
            if kind in (types.KEY_VALUE, types.SESSION):
                assert with_headers == {True}, topic
            elif kind in (types.WINDOW, types.OUTER_JOIN):
                assert with_headers == set(), topic
            else:
                assert False in with_headers, topic
