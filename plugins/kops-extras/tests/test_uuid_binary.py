import pytest
from kops_extras.uuid_binary import UuidBinary

from kops.plugins.api import Format, UndecodableRecord, UsageProblem

TEXT = "123e4567-e89b-12d3-a456-426614174000"


def test_round_trip():
    form = UuidBinary()
    assert isinstance(form, Format)
    assert form.encode(TEXT) == bytes.fromhex(TEXT.replace("-", ""))
    assert form.decode(form.encode(TEXT)) == TEXT
    assert form.encode(None) is None


def test_wrong():
    with pytest.raises(UndecodableRecord):
        UuidBinary().decode(b"short")
    with pytest.raises(UsageProblem):
        UuidBinary().encode("nonsense")
