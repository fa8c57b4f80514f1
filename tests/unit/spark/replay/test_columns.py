"""Which columns of a record its expressions need, and which of them are the same for all."""

import pytest

from kops.core.statefile.sources import Form
from kops.spark.replay.columns import TYPES, columns_named, literal

BYTES, JSON = Form("bytes"), Form("json", "price double")


@pytest.mark.parametrize(
    ("expressions", "value", "named"),
    [
        (["offset % 100 = 0", "concat('to-', partition)"], BYTES, ()),
        (["Value.price * 2 > 1"], JSON, ("value",)),
        (["partition = 1"], JSON, ("value",)),
        (["KEY is null", "timestamp > now()"], BYTES, ("key", "timestamp_ms")),
        (["timestamp_ms + 1", "exists(headers, each -> each.value = 'x')"], BYTES, ("value", "timestamp_ms", "headers")),
        (["to_json(struct( *))"], BYTES, ("key", "value", "timestamp_ms", "headers")),
        (["length(IDENTIFIER('va' || 'lue')) > 1"], BYTES, ("key", "value", "timestamp_ms", "headers")),
    ],
)
def test_what_is_named_is_read(expressions, value, named):
    assert columns_named(expressions, BYTES, value) == ("partition", "offset", *named)
    assert set(columns_named(expressions, BYTES, value)) <= set(TYPES)


@pytest.mark.parametrize(
    ("expression", "same"),
    [("'kops'", b"kops"), (" 'ä' ", "ä".encode()), ("''", b""), ("'a' || 'b'", None), (r"'a\n'", None), ("'${x}'", None), ("null", None)],
)
def test_a_plain_text_is_the_same_for_all(expression, same):
    assert literal(expression) == same
