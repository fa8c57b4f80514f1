"""Formats guessed from bytes that Kafka's serializers make."""

import struct

import pytest

from kops.core.records.format_guess import guess_format


@pytest.mark.parametrize(
    ("samples", "name", "schema"),
    [
        ([b"apple", "ключ".encode(), b"a\nb"], "string", None),
        ([b"12345678"], "string", None),
        ([struct.pack(">q", number) for number in (0, 1, 42)], "long", None),
        ([struct.pack(">d", number) for number in (2000.0, 0.5, 0.0)], "double", None),
        ([struct.pack(">i", number) for number in (0, 7)], "int", None),
        ([struct.pack(">f", number) for number in (2.5, 1.0)], "float", None),
        ([struct.pack(">h", number) for number in (0, 7)], "short", None),
        ([b"\x80\x01\x02", b"\xff"], "bytes", None),
        ([b'{"id":1,"item":"x","price":2}', b'{"id":2,"item":null,"price":2.5}'], "json", "id bigint, item string, price double"),
        ([b'{"a":{"b":1}}'], "json", None),
        ([b'{"two words":true}'], "json", "`two words` boolean"),
        ([b"00000000-0000-0000-0000-000000000001"], "uuid", None),
        ([b"\x00\x00\x00\x00\x07\x02\x04"], None, None),
        ([None], None, None),
        ([], None, None),
    ],
)
def test_the_format_that_all_samples_are_of(samples, name, schema):
    found = guess_format(samples)
    assert (found.name, found.schema) == (name, schema)
    assert found.reason


def test_what_begins_with_an_id_is_what_the_registry_says():
    framed = [b"\0\0\0\0\x07\xff\x01", b"\0\0\0\0\x07\xfe"]
    assert guess_format(framed, lambda data: "avro" if data == framed[0] else None).name == "avro"
    assert guess_format(framed, lambda _: None).name is None
    assert "schema registry" in guess_format(framed).reason
    assert guess_format([b"\0" * 7 + b"\1"], lambda _: "avro").name == "long"
