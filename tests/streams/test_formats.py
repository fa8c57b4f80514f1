"""Every format beside the library's own serializers: the same bytes, the same values, and the same refusals.

Expected bytes are the library's. Damaged bytes go through both: what kops decodes, the library decodes to the same.
"""

import base64
import json
import random
from pathlib import Path

import pytest
from hypothesis import strategies as st

from kops.core.errors import UndecodableRecord
from kops.core.models import TopicPartition
from kops.formats.streams import offset_metadata, positions, suppression, table_changes, window_keys
from kops.formats.streams.offset_metadata import OffsetMetadata
from kops.formats.streams.table_changes import TableChange
from kops.formats.streams.window_keys import WindowKey
from support.streams_encoders import encode_position, encode_suppressed, encode_table_change, encode_window_key, suppressed_headers
from support.streams_formats import (
    ANY_TIMES,
    CHANGES,
    FORMS,
    NAMES,
    SAME_PRIOR,
    SEQUENCES,
    STARTS,
    TIMES,
    VALUES,
    context_cells,
    generated,
    header_cells,
    text,
)

pytestmark = pytest.mark.streams

CASES = 200
DAMAGED = 80
GOLDEN = Path(__file__).parents[1] / "unit" / "formats" / "streams" / "golden"
SUPPRESSED = json.loads((GOLDEN / "suppress.json").read_text("utf-8"))
VERSIONS = {"2.1.1": 0, "2.2.1": 1, "2.3.1": 2, "2.4.0": 3}
"""What each release wrote; 2.4.0 said that it was version 2."""
SEED = 20261121


@pytest.fixture(scope="module", params=["newest", "4.1"])
def library(request):
    return request.getfixturevalue("oracle" if request.param == "newest" else "older_oracle")


@pytest.fixture(scope="module")
def cases():
    """The same cases for every version, made once."""
    made: dict[str, list] = {}
    return lambda form: made.setdefault(form.name, generated(form.cases, CASES))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_bytes_are_those_of_the_library_and_are_read_alike(library, cases, form):
    chosen = cases(form)
    written = form.written(library, chosen)
    for case, result in zip(chosen, written, strict=True):
        expected = result["ok"]
        both = expected if isinstance(expected, list) else [expected]
        assert [text(form.encode(case))] * len(both) == both, case
        assert form.decode(base64.b64decode(both[0])) == case
    read = form.read(library, [form.encode(case) for case in chosen])
    for case, result in zip(chosen, read, strict=True):
        assert form.sorted(result["ok"]) == form.answered(case), case


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_damaged_bytes_are_read_alike_or_refused(library, cases, form):
    damaged = [data for case in cases(form)[:DAMAGED] for data in damages(form.encode(case), random.Random(SEED))]
    decoded = {data: found for data in damaged if (found := decoded_or_none(form, data)) is not None}
    assert len(decoded) < len(set(damaged)), "damage that proves nothing"
    for (data, found), result in zip(decoded.items(), form.read(library, list(decoded)), strict=True):
        assert "ok" in result, (data, result)
        assert form.sorted(result["ok"]) == form.answered(found), data
    if form.exact:
        refused = [data for data in damaged if data not in decoded]
        for data, result in zip(refused, form.read(library, refused), strict=True):
            assert "error" in result, (data, result)


def decoded_or_none(form, data):
    try:
        return form.decode(data)
    except UndecodableRecord:
        return None


def damages(data: bytes, chance: random.Random) -> list[bytes]:
    """Return the bytes cut short, with one changed, and others altogether."""
    chance.seed(data)
    at = chance.randrange(len(data)) if data else 0
    changed = bytes([*data[:at], chance.choice((0, 1, 2, 5, 0x7F, 0x80, 0xFF)), *data[at + 1 :]])
    return [data[:at], changed, chance.randbytes(chance.randrange(30))]


@pytest.mark.parametrize(("version", "label"), [(0, 0), (1, 1), (2, 2), (3, 2), (3, 3)])
def test_suppressed_values_of_every_version_are_restored_alike(library, version, label):
    """The library reads the versions 0 to 2, and no longer writes them; a 3 may call itself 2."""
    headers = suppressed_headers(label)
    chosen = [encode_suppressed(case, version) for case in generated(CHANGES | SAME_PRIOR, CASES)]
    golden = [case for case in SUPPRESSED if VERSIONS[case["version"]] == version and min(version, 2) == label and case["value"]]
    chosen += [bytes.fromhex(case["value"]) for case in golden]
    assert len(golden) > 9 or label == 3
    read = library.formats("suppressed_of", [[text(data), header_cells(headers)] for data in chosen])
    for data, result in zip(chosen, read, strict=True):
        change = suppression.decode(data, headers)
        new, old, prior, time, context = result["ok"]
        assert (new, old, prior, time) == (text(change.new), text(change.old), text(change.prior), change.buffer_time_ms)
        assert change.context is None if version == 0 else context == context_cells(change.context)


def test_changes_with_a_flag_of_the_latest_are_read_alike(library):
    """Forms that the library reads, and does not write."""
    chosen = generated(st.builds(TableChange, VALUES | st.none(), VALUES, st.booleans()), CASES)
    read = library.formats("change_of", [[text(encode_table_change(case))] for case in chosen])
    for case, result in zip(chosen, read, strict=True):
        assert result["ok"] == [text(case.new), text(case.old), case.is_latest]
        assert table_changes.decode(encode_table_change(case)) == case


def test_windows_end_where_the_library_ends_them(library):
    chosen = generated(st.tuples(STARTS, st.integers(1, 2**63 - 1)), CASES)
    ends = library.formats("window_end", [list(case) for case in chosen])
    assert [result["ok"] for result in ends] == [window_keys.end_of(*case) for case in chosen]


def test_windows_and_sessions_that_the_library_cannot_make_are_refused(library):
    for form, cases in (
        ("topic_window_key", [(b"k", -1), (b"k", 2**63 - 1)]),
        ("session_key", [(b"k", -1, 5), (b"k", 6, 5)]),
    ):
        assert all("error" in result for result in library.formats(form, [[text(key), *times] for key, *times in cases]))
    for start in (-1, 2**63 - 1):
        with pytest.raises(UndecodableRecord):
            window_keys.decode(encode_window_key(WindowKey(b"k", start)))


def test_positions_of_many_partitions_are_read_alike(library):
    partitions = st.builds(TopicPartition, NAMES.filter(len), SEQUENCES)
    chosen = generated(st.dictionaries(partitions, TIMES, min_size=2, max_size=6), CASES)
    cells = [[[part.topic, part.partition, offset] for part, offset in case.items()] for case in chosen]
    written = library.formats("position", [[each] for each in cells])
    read = library.formats("position_of", [[text(encode_position(case))] for case in chosen])
    for case, each, ours, theirs in zip(chosen, cells, read, written, strict=True):
        assert sorted(ours["ok"]) == sorted(each)
        data = base64.b64decode(theirs["ok"])
        assert positions.decode(data) == case
        assert len(encode_position(case)) == len(data)


def test_metadata_of_many_stores_is_read_alike(library):
    chosen = generated(st.builds(OffsetMetadata, ANY_TIMES, st.dictionaries(NAMES, ANY_TIMES, min_size=2, max_size=5)), CASES)
    cells = [[case.partition_time_ms, [list(each) for each in case.last_emissions_ms.items()]] for case in chosen]
    written = library.formats("offset_metadata", cells)
    read = library.formats("offset_metadata_of", [[offset_metadata.encode(case)] for case in chosen])
    for case, (time, emissions), ours, theirs in zip(chosen, cells, read, written, strict=True):
        assert ours["ok"][0] == time
        assert sorted(ours["ok"][1]) == sorted(emissions)
        assert offset_metadata.decode(theirs["ok"]) == case
