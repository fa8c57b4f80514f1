"""Faust's tables. golden/faust.json is from the real Faust, see golden/faust_goldens.py."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from kops.core.errors import UndecodableRecord, UsageProblem
from kops.formats.streams import faust
from kops.formats.streams.faust import WindowKey

GOLDEN = json.loads((Path(__file__).parent / "golden" / "faust.json").read_text("utf-8"))["cases"]
SPELLINGS = {"orjson": False, "json": True}


def of_kind(*kinds):
    return [case for case in GOLDEN if case["kind"] in kinds]


def doubles(value):
    """Return a value with its numbers as Faust reads them."""
    if isinstance(value, dict):
        return {name: doubles(each) for name, each in value.items()}
    if isinstance(value, list):
        return [doubles(each) for each in value]
    return float(value) if isinstance(value, Decimal) else value


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("case", of_kind("text", "value"), ids=lambda case: repr(case["value"])[:20])
def test_keys_and_values_are_those_of_faust(case, spelling):
    data = bytes.fromhex(case["bytes"][spelling])
    assert faust.encode(case["value"], ascii_only=SPELLINGS[spelling]) == data
    assert doubles(faust.decode(data)) == case["value"]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("case", of_kind("model"), ids=lambda case: repr(case["value"])[:30])
def test_models_are_those_of_faust(case, spelling):
    value = faust.decode(bytes.fromhex(case["bytes"][spelling]))
    assert faust.model_name(value) == case["namespace"]
    assert {name: field for name, field in value.items() if name != faust.MODEL_KEY} == case["value"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_keys_of_windows_are_those_of_faust(spelling):
    for case in of_kind("window"):
        data, window = bytes.fromhex(case["bytes"][spelling]), WindowKey(case["value"], case["start"], case["end"])
        body = [window.key, [window.start, window.end]]
        assert faust.encode(body, ascii_only=SPELLINGS[spelling]) == data
        assert faust.decode_window_key(data) == window


@pytest.mark.parametrize("data", [b"", b"k", b'"k"', b"[]", b'["k",[1.0]]', b'["k",[1.0,"2"]]', b'["k",[true,2]]', b'["k",[1,2],3]', b"{}"])
def test_other_bytes_are_no_windowed_key(data):
    with pytest.raises(UndecodableRecord):
        faust.decode_window_key(data)


def test_what_is_no_json_cannot_be_written():
    for ascii_only in (True, False):
        with pytest.raises(UsageProblem):
            faust.encode(b"bytes", ascii_only=ascii_only)


def test_what_is_no_object_is_no_model():
    assert faust.model_name([1]) is None
    assert faust.model_name({"a": 1}) is None
    assert faust.model_name({"a": 1, "__faust": "odd"}) is None
