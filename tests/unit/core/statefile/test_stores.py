"""State files: what they may say, and how each mistake is reported."""

import pytest
import yaml

from kops.core.errors import ConfigError
from kops.core.statefile import parse_state_file

GOOD = """
application: prices-app
streams: {version: "4.3", guarantee: exactly_once_v2}
stores:
  totals:
    type: key-value
    from: {topic: prices-in, key: string, value: {format: json, schema: "item string, price double"}}
    where: value.price is not null
    key_by: value.item
    aggregate: {sum: value.price, as: double}
  seen:
    from: {topic: prices-in, key: string, value: bytes}
    aggregate: {count: true}
  table:
    from: {topic: prices-in, key: long, value: string}
    changelog: other-changelog
"""


def parsed(text: str):
    return parse_state_file("state.yaml", yaml.safe_load(text))


def test_what_a_state_file_says():
    found = parsed(GOOD)
    totals, seen, table = found.stores
    assert (found.application, found.exactly_once, found.streams_version) == ("prices-app", True, "4.3")
    assert totals.changelog == "prices-app-totals-changelog"
    assert totals.repartition_topic == "prices-app-totals-repartition"
    assert (totals.key_form.name, totals.aggregate.form.name, totals.aggregate.label) == ("string", "double", "sum value.price")
    assert (seen.aggregate.kind, seen.aggregate.form.name, seen.repartition_topic) == ("count", "long", None)
    assert (table.aggregate.kind, table.changelog, table.key_form.name) == ("table", "other-changelog", "long")
    assert table.aggregate.is_whole_value
    assert not totals.aggregate.is_whole_value


STORE = {"from": {"topic": "t", "key": "string", "value": "long"}}


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"from": {"topik": "t", "key": "string", "value": "long"}}, "stores.s.from.topik", "topic"),
        ({"from": {"topic": "t", "key": "strng", "value": "long"}}, "stores.s.from.key", "string"),
        ({"from": {"topic": "t", "key": "string"}}, "stores.s.from.value", "missing"),
        ({"from": {"topic": "a b", "key": "string", "value": "long"}}, "stores.s.from.topic", "a b"),
        ({"from": {"topic": "t", "key": "string", "value": {"format": "long", "schema": "a int"}}}, "stores.s.from.value.schema", "json"),
        ({"type": "windw"}, "stores.s.type", "window"),
        ({"aggregate": {"sum": "value"}, "key_as": "long"}, "stores.s.key_as", "key_by"),
        ({"aggregate": {"sum": "value", "count": True}}, "stores.s.aggregate", "count"),
        ({"aggregate": {}}, "stores.s.aggregate", "no aggregate"),
        ({"explode": "split(value, ' ')", "aggregate": {"max": "value"}}, "stores.s.aggregate.as", "missing"),
        ({"type": "plain", "explode": "split(value, ' ')", "aggregate": None}, "stores.s.explode", "reducer"),
        ({"explode": "split(value, ' ')"}, "stores.s.explode", "without an aggregate"),
        ({"aggregate": {"summ": "value"}}, "stores.s.aggregate.summ", "sum"),
        ({"aggregate": {"sum": "value.price"}}, "stores.s.aggregate.as", "missing"),
        ({"aggregate": {"sum": "value", "as": "string"}}, "stores.s.aggregate.as", "number"),
        ({"aggregate": {"max": "value", "as": "json"}}, "stores.s.aggregate.as", "order"),
        ({"aggregate": {"count": False}}, "stores.s.aggregate.count", "true"),
        ({"aggregate": {"count": True, "as": "int"}}, "stores.s.aggregate.as", "long"),
        ({"where": "value > 1"}, "stores.s.where", "aggregate"),
        ({"where": ["value > 1"]}, "stores.s.where", "a list"),
        ({"aggregat": {"count": True}}, "stores.s.aggregat", "aggregate"),
        ({"output": "o", "type": "plain"}, "stores.s.output", "key-value"),
        ({"output": "o", "type": "versioned", "history_retention": "1h"}, "stores.s.output", "fields"),
        ({"output": "o", "from": {"topic": "t", "key": "json", "value": "long"}}, "stores.s.output", "keys in json"),
        ({"output": "o", "from": {"topic": "t", "key": "string", "value": "avro"}}, "stores.s.output", "values in avro"),
        ({"output": "t"}, "stores.s.output", "own changelog"),
        ({"output": "a-s-changelog"}, "stores.s.output", "own changelog"),
        ({"output": "a b"}, "stores.s.output", "a b"),
    ],
)
def test_a_wrong_field_is_named_with_its_path_and_the_nearest_name(change, field, said):
    with pytest.raises(ConfigError) as error:
        parse_state_file("state.yaml", {"application": "a", "stores": {"s": {**STORE, **change}}})
    assert f"state.yaml: {field}" in error.value.message
    assert said in f"{error.value.message} {error.value.hint}"
    assert error.value.details["field"] == field


def test_where_the_application_writes_a_table():
    assert parse_state_file("f", {"application": "a", "stores": {"s": {**STORE, "output": "o"}}}).stores[0].output == "o"
    windows = {"type": "window", "window": {"size": "1m"}, "aggregate": {"count": True}}
    for streams, more in (({"version": "4.3"}, windows), ({"topology_optimization": "all"}, {}), ({"library": "faust"}, {})):
        body = {"application": "a", "streams": streams, "stores": {"s": {**STORE, **more, "output": "o"}}}
        with pytest.raises(ConfigError, match=r"stores\.s\.output is of a"):
            parse_state_file("f", body)


@pytest.mark.parametrize("body", [None, [], "text", {}, {"application": "a"}, {"application": "a", "stores": {}}, {"stores": {"s": STORE}}])
def test_what_is_no_state_file_at_all(body):
    with pytest.raises(ConfigError):
        parse_state_file("state.yaml", body)


def test_a_table_of_faust_has_keys_in_json():
    table = {"from": {"topic": "t", "key": "string", "value": "json"}, "aggregate": {"reducer": "stock:Stock", "as": "json"}}
    raw = {**table, "from": {"topic": "t", "key": "bytes", "value": "json"}}
    found = parse_state_file("state.yaml", {"application": "a", "streams": {"library": "faust"}, "stores": {"s": table, "raw": raw}})
    assert [store.key_form.name for store in found.stores] == ["json", "bytes"]
    assert (found.library, found.json_module) == ("faust", "json")
    with pytest.raises(ConfigError, match=r"stores\.s is more than a table"):
        body = {"application": "a", "streams": {"library": "faust"}, "stores": {"s": {**table, "key_by": "value", "key_as": "json"}}}
        parse_state_file("state.yaml", body)


@pytest.mark.parametrize(
    "given",
    [
        {"json": "orjson"},
        {"library": "fast"},
        {"library": "faust", "json": "ujson"},
        {"guarantee": "exactly_once"},
        {"version": ["4"]},
        {"garantee": "at_least_once"},
    ],
)
def test_wrong_settings_of_the_application(given):
    with pytest.raises(ConfigError) as error:
        parse_state_file("state.yaml", {"application": "a", "streams": given, "stores": {"s": STORE}})
    assert "streams." in error.value.message


@pytest.mark.parametrize("expression", ["int(value)", "cast(value as int)", "bigint(trim(value))", "try_cast(value.n as double)"])
def test_the_greatest_number_is_not_the_greatest_text(expression):
    with pytest.raises(ConfigError, match="compares numbers") as refused:
        parse_state_file("f", {"application": "a", "stores": {"s": {**STORE, "aggregate": {"max": expression, "as": "string"}}}})
    assert "as: int" in refused.value.hint
    assert "cast" not in refused.value.hint
