"""Protobuf in Confluent's wire format; the bytes are those of the specification, written out."""

import pytest

from kops.core.errors import OperationFailed, UndecodableRecord
from kops.core.schemas.models import RegisteredSchema
from kops.formats.confluent import Protobuf
from kops.formats.protobuf import ProtobufSchema

PROTO = """// a file as people write them
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto"; import public "money.proto"; import "vendor/options.proto";
option java_package = "org.shop";
/* the order */
message Order {
  option (vendor.note) = { text: "}" };
  message Line { string item = 1; message Tax { int32 rate = 1; } }
  enum Kind { NEW = 0; OLD = 1 [deprecated = true]; reserved 5 to 9; }
  int64 id = 1 [(vendor.pii) = true, json_name = "ID"];
  Kind kind = 2;
  repeated Line lines = 3;
  map<string, double> tags_by_name = 4;
  oneof how { string card = 5; bytes cash = 6; }
  google.protobuf.Timestamp at = 7;
  optional int32 count = 8;
  money.Amount amount = 9;
  reserved 20 to max; reserved "old";
}
message Other { sint32 x = 1; }
service Orders { rpc Get (Order) returns (stream Other) { option (vendor.http) = { get: "/x" }; } rpc Put (Other) returns (Other); }
"""
MONEY = """syntax = "proto2"; package money; enum Unit { EUR = 1; }
message Amount { required .money.Unit unit = 1; optional int64 cents = 2 [default = 5]; extensions 100 to 199; }"""


def protobuf():
    return Protobuf({7: RegisteredSchema(7, "PROTOBUF", PROTO, (("money.proto", MONEY),))}.__getitem__)


def message(indexes, body):
    return b"\0\0\0\0\7" + indexes + body


def test_protobuf_with_its_message_indexes():
    form = protobuf()
    # The bytes are those of the wire format's specification, written out: field number and type, then the data.
    body = (
        b"\x08\xb9\x60"  # id: 12345
        b"\x10\x01"  # kind: OLD
        b"\x1a\x03\x0a\x01\x61"  # a line with the item "a"
        b"\x22\x0c\x0a\x01\x74\x11\x00\x00\x00\x00\x00\x00\xf8\x3f"  # tags_by_name: t -> 1.5
        b"\x32\x01\xff"  # cash
        b"\x3a\x04\x08\x05\x10\x00"  # at: 5 seconds after the epoch
        b"\x4a\x02\x08\x01"  # amount in EUR
    )
    value = {
        "id": 12345,
        "kind": "OLD",
        "lines": [{"item": "a"}],
        "tags_by_name": {"t": 1.5},
        "cash": {"data": "/w==", "encoding": "base64"},
        "at": "1970-01-01T00:00:05Z",
        "amount": {"unit": "EUR"},
    }
    assert form.show(form.decode(message(b"\0", body))) == value
    assert form.show(form.decode(message(b"\2\0", body))) == value  # one index, which is 0
    assert form.decode(message(b"\2\2", b"\x08\x03")) == {"x": -2}  # the second message
    assert form.decode(message(b"\6\0\0\0", b"\x08\x07")) == {"rate": 7}  # Order.Line.Tax
    assert form.decode(message(b"\0", b"")) == {"id": 0, "kind": "NEW", "lines": [], "tags_by_name": {}}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (message(b"\2\x08", b""), "has no message at [4]"),
        (message(b"", b""), "the bytes end too soon"),
        (message(b"\0", b"\x08"), "not of its Protobuf schema: shop.Order"),
        (message(b"\x01", b""), "no place of a Protobuf message in front"),
    ],
)
def test_what_is_not_protobuf(data, problem):
    with pytest.raises(UndecodableRecord) as caught:
        protobuf().decode(data)
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('syntax = "proto3";\nmessage A {', "line 2: the text ends in the middle"),
        ("message A {\n  int32 x = ;\n}", "line 2: ';' where a number belongs"),
        ("message A { Missing x = 1; }", "Missing"),
        ("nonsense", "'nonsense' where a message"),
        ('syntax = "proto9";', "the syntax 'proto9'"),
    ],
)
def test_what_is_no_protobuf_schema(text, problem):
    with pytest.raises(OperationFailed) as caught:
        ProtobufSchema(text)
    assert problem in caught.value.message


def test_numbers_are_octal_and_hexadecimal_as_protoc_reads_them():
    schema = ProtobufSchema('syntax = "proto2"; enum E { A = 010; B = 0x10; C = -1; } message M { optional E e = 0x2; }')
    assert [schema.decode(b"\0\x10" + number)["e"] for number in (b"\x08", b"\x10")] == ["A", "B"]
