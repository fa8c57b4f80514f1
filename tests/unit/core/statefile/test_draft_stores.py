"""What a draft says of stores that need more than a description tells."""

import pytest
import yaml

from kops.core.errors import ConfigError
from kops.core.records.format_guess import FormatGuess
from kops.core.statefile import parse_state_file
from kops.core.statefile.draft import Facts, StoreFacts, TopicFacts, refuse_open
from kops.core.statefile.draft_stores import drafted
from kops.core.statefile.models import SESSION, WINDOW
from kops.core.streams.topics import ADDED_MS
from kops.core.streams.topology import parse_topology
from kops.core.streams.topology_trace import traces

STRING = FormatGuess("string", "text")
HEAD = "Topologies:\n   Sub-topology: 0\n    Source: KSTREAM-SOURCE-0000000000 (topics: [in])\n      --> {0}\n"


def node(name, stores, before, after="none"):
    return f"    Processor: {name} (stores: [{stores}])\n      --> {after}\n      <-- {before}\n"


SUPPRESSED = (
    HEAD.format("KSTREAM-AGGREGATE-0000000002")
    + node("KSTREAM-AGGREGATE-0000000002", "per-minute", "KSTREAM-SOURCE-0000000000", "KTABLE-SUPPRESS-0000000003")
    + node("KTABLE-SUPPRESS-0000000003", "closed-store", "KSTREAM-AGGREGATE-0000000002")
)
PROCESSOR = HEAD.format("WordProcessor") + node("WordProcessor", "words", "KSTREAM-SOURCE-0000000000")
GLOBAL_JOIN = (
    HEAD.format("KSTREAM-LEFTJOIN-0000000001")
    + node("KSTREAM-LEFTJOIN-0000000001", "", "KSTREAM-SOURCE-0000000000", "KSTREAM-AGGREGATE-0000000002")
    + node("KSTREAM-AGGREGATE-0000000002", "counts", "KSTREAM-LEFTJOIN-0000000001")
)
COGROUP = HEAD.format("orders-cogroup-agg-0") + node("orders-cogroup-agg-0", "totals", "KSTREAM-SOURCE-0000000000")
TO_TABLE = (
    HEAD.format("KSTREAM-FILTER-0000000001")
    + node("KSTREAM-FILTER-0000000001", "", "KSTREAM-SOURCE-0000000000", "KSTREAM-MAPVALUES-0000000002")
    + node("KSTREAM-MAPVALUES-0000000002", "", "KSTREAM-FILTER-0000000001", "KSTREAM-TOTABLE-0000000003")
    + node("KSTREAM-TOTABLE-0000000003", "latest", "KSTREAM-MAPVALUES-0000000002")
)


def draft_of(text, **facts):
    found = traces(parse_topology(text))
    known = {"changelog": True, "key": STRING, "value": STRING, **facts}
    return drafted("app", found, [], Facts({store: StoreFacts(**known) for store in found}, {"in": TopicFacts(STRING, STRING)}))


def body_of(draft):
    return yaml.safe_load(draft.text())


def opened(draft):
    return [path for path, _todo in draft.open_fields]


def test_a_grace_that_would_be_a_guess_is_open_and_refused():
    draft = draft_of(SUPPRESSED, type=WINDOW, retention_ms=ADDED_MS + 65_000, step_ms=60_000)
    window = body_of(draft)["stores"]["per-minute"]["window"]
    assert window == {"size": "TODO", "grace": "TODO", "retention": "1m5s"}
    assert {"streams.version", "stores.per-minute.window.grace", "stores.per-minute.from.timestamp"} <= set(opened(draft))
    with pytest.raises(ConfigError, match=r"still open: .*stores\.per-minute\.window\.grace"):
        refuse_open("f", body_of(draft))


@pytest.mark.parametrize("kind", [WINDOW, SESSION])
def test_retention_is_open_where_the_changelog_does_not_tell(kind):
    assert body_of(draft_of(SUPPRESSED, type=kind))["stores"]["per-minute"]["window"]["retention"] == "TODO"


def test_the_buffer_of_suppress_is_named_on_its_store():
    draft = draft_of(SUPPRESSED, type=WINDOW)
    assert body_of(draft)["stores"]["per-minute"]["suppress"] == "closed-store"
    assert "closed-store" in draft.skipped


def test_a_store_of_a_processor_leaves_its_type_open_and_says_that_code_decides():
    draft = draft_of(PROCESSOR)
    assert body_of(draft)["stores"]["words"] == {
        "type": "TODO",
        "from": {"topic": "in", "key": "string", "value": "string"},
        "aggregate": "TODO",
    }
    text = " ".join(line.strip(" #") for line in draft.text().splitlines())
    assert "its code decides keys, values and what is forgotten" in text
    assert "Stores.lruMap" in text


@pytest.mark.parametrize(("text", "store", "why"), [(GLOBAL_JOIN, "counts", "global table"), (COGROUP, "totals", "cogroup")])
def test_what_a_state_file_does_not_say_is_left_out_with_the_reason(text, store, why):
    draft = draft_of(text)
    assert why in draft.skipped[store]
    assert body_of(draft)["stores"] == "TODO"


def test_a_table_of_a_filtered_stream_is_drafted_as_one():
    draft = draft_of(TO_TABLE)
    store = body_of(draft)["stores"]["latest"]
    assert store == {
        "from": {"topic": "in", "key": "string", "value": "string"},
        "where": "TODO",
        "to_table": True,
        "value": "TODO",
        "as": "string",
    }
    filled = {"application": "app", "stores": {"latest": store | {"where": "value <> ''", "value": "upper(value)"}}}
    assert parse_state_file("f", filled).stores[0].to_table


def test_that_times_are_the_records_own_is_said():
    assert any("TimestampExtractor" in note for note in draft_of(PROCESSOR).notes)


SOURCE = {"topic": "in", "key": "string", "value": "string"}


@pytest.mark.parametrize(
    ("wrong", "field", "hint", "followed"),
    [
        ({"where": "value <> ''"}, "where", "`to_table: true`", {"to_table": True}),
        ({"key_by": "value"}, "key_by", "`to_table: true`", {"to_table": True}),
        ({"to_table": True, "value": "upper(value)"}, "as", "one of: string", {"as": "string"}),
        ({"to_table": True, "explode": "split(value, ' ')"}, "as", "one of: string", {"as": "string"}),
        ({"type": "plain", "aggregate": {"count": True}}, "aggregate", "reducer", {"aggregate": {"reducer": "m:count", "as": "long"}}),
    ],
)
def test_a_hint_that_is_followed_leads_on(wrong, field, hint, followed):
    with pytest.raises(ConfigError) as refused:
        parse_state_file("f", {"application": "a", "stores": {"s": {"from": SOURCE, **wrong}}})
    assert refused.value.details["field"] == f"stores.s.{field}"
    assert hint in refused.value.hint
    assert "last" not in refused.value.hint.split()
    parse_state_file("f", {"application": "a", "stores": {"s": {"from": SOURCE, **wrong, **followed}}})


@pytest.mark.parametrize(
    ("store", "field"),
    [
        ({"to_table": "yes"}, "to_table"),
        ({"to_table": True, "aggregate": {"count": True}}, "aggregate"),
        ({"value": "upper(value)"}, "value"),
        ({"type": "plain", "to_table": True}, "to_table"),
    ],
)
def test_to_table_is_of_a_stream_alone(store, field):
    with pytest.raises(ConfigError) as refused:
        parse_state_file("f", {"application": "a", "stores": {"s": {"from": SOURCE, **store}}})
    assert refused.value.details["field"] == f"stores.s.{field}"


def test_a_table_of_a_filtered_stream_is_not_joined():
    tables = {"s": {"from": {"table": "t"}, "where": "value <> ''"}, "t": {"from": SOURCE, "to_table": True, "where": "value <> 'x'"}}
    with pytest.raises(ConfigError, match="no further than its own store"):
        parse_state_file("f", {"application": "a", "stores": tables})


def test_windows_that_do_not_start_with_the_epoch_are_seen():
    eighteen = 18 * 3_600_000
    draft = draft_of(SUPPRESSED, type=WINDOW, retention_ms=2 * ADDED_MS, step_ms=ADDED_MS, alignment_ms=eighteen)
    assert body_of(draft)["stores"]["per-minute"]["window"] == {
        "size": "1d",
        "grace": "0ms",
        "alignment": "18h",
        "retention": "1d",
    }
    assert "not TimeWindows" in " ".join(line.strip(" #") for line in draft.text().splitlines())


def test_the_store_of_a_processor_that_counts_words_can_be_said():
    words = {"explode": "java_split(value, ' ')", "key_by": "value", "in_place": True, "aggregate": {"reducer": "m:count", "as": "int"}}
    store = parse_state_file("f", {"application": "a", "stores": {"s": {"type": "plain", "from": SOURCE, **words}}}).stores[0]
    assert (store.repartition_topic, store.moves) == (None, False)
    for wrong in ({"key_by": None}, {"repartition": "r"}, {"in_place": "yes"}):
        with pytest.raises(ConfigError, match="in_place"):
            parse_state_file("f", {"application": "a", "stores": {"s": {"type": "plain", "from": SOURCE, **words, **wrong}}})
