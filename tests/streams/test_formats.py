"""Every format beside the library's own serializers: the same bytes, the same values, and the same refusals.

Expected bytes are the library's. Damaged bytes go through both: what kops decodes, the library decodes to the same.
"""

import base64
import random

import pytest

from kops.core.errors import UndecodableRecord
from support.streams_formats import FORMS, generated, text

pytestmark = pytest.mark.streams

CASES = 300
SEED = 20261121


@pytest.fixture(scope="module", params=["4.3", "4.1"])
def library(request):
    return request.getfixturevalue("oracle" if request.param == "4.3" else "older_oracle")


@pytest.fixture(scope="module")
def cases():
    """The same cases for every version, made once."""
    made: dict[str, list] = {}
    return lambda form: made.setdefault(form.name, generated(form.cases, CASES))


def has(library, form):
    return tuple(map(int, library.version.split(".")[:2])) >= tuple(map(int, (form.since or "0.0").split(".")))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_bytes_are_those_of_the_library_and_are_read_alike(library, cases, form):
    if not has(library, form):
        with pytest.raises(RuntimeError, match="rawValueTo"):
            form.written(library, cases(form)[:1])
        return
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
    if not has(library, form):
        return
    damaged = [data for case in cases(form) for data in damages(form.encode(case), random.Random(SEED))]
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
