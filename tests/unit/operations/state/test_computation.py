"""What is refused of what was computed: never what needs nothing, always what cannot be computed, and doubtful keys without the flag."""

from types import SimpleNamespace

import pytest

from kops.core.errors import Refused
from kops.core.streams.verdict import counted, doubt, obstacle, remark
from kops.operations.state.computation import _refuse_doubtful

GONE, ORDER = obstacle("lost_records", "records of the input are gone"), doubt("record_order", "in which order is not known")
BUFFER, BYTES = doubt("lost_buffer", "its buffer is empty", subject="buffer"), remark("other_bytes", "bytes may differ")


def refused(*findings, accepted=False, must_write=True, fits=True, differing=0, **given):
    """Return the error; None: it is not refused."""
    numbers = {"keys": 10, "proven": 0, "contradicted": 0, "unexpected": 0, **given}
    found = SimpleNamespace(
        verdict=counted(findings, (), **numbers),
        facts=SimpleNamespace(store=SimpleNamespace(name="totals"), fits=fits),
        must_write=must_write,
        contradicted=None,
        witnesses=SimpleNamespace(differing=differing),
    )
    try:
        _refuse_doubtful(found, accepted=accepted)
    except Refused as error:
        return error
    return None


@pytest.mark.parametrize("accepted", [False, True])
def test_what_is_proven_or_computed_needs_no_flag(accepted):
    assert refused(accepted=accepted) is None
    assert refused(BYTES, accepted=accepted) is None
    assert refused(ORDER, GONE, proven=10, accepted=accepted) is None


def test_doubtful_keys_are_written_only_with_the_flag():
    error = refused(ORDER, BYTES, proven=4)
    assert error.message == "store totals is doubtful (4 proven, 6 doubtful): in which order is not known"
    assert error.hint.endswith("--accept-doubtful writes them all the same")
    assert (error.details["store"], error.details["verdict"]) == ("totals", "doubtful")
    assert [finding["check"] for finding in error.details["findings"]] == ["record_order"]
    assert refused(ORDER, proven=4, accepted=True) is None
    assert refused(BUFFER, proven=10) is not None
    assert "--damaged totals" in refused(ORDER, differing=2, contradicted=2).hint


@pytest.mark.parametrize("accepted", [False, True])
def test_what_cannot_be_computed_is_never_written(accepted):
    error = refused(ORDER, GONE, proven=4, accepted=accepted)
    assert error.message.startswith("store totals is impossible (4 proven, 6 impossible): ")
    assert "records of the input are gone" in error.message
    assert "--accept-doubtful" not in error.hint
    assert refused(GONE, proven=9, contradicted=1, accepted=accepted) is not None, "the key that differs cannot be computed either"


def test_a_changelog_that_needs_nothing_is_not_refused():
    assert refused(ORDER, must_write=False) is None
    assert refused(GONE, must_write=False) is None
    assert refused(GONE, must_write=False, fits=False) is not None
    assert refused(BUFFER, must_write=False) is not None


def test_many_findings_are_counted():
    assert refused(*(doubt(f"check-{number}", f"reason {number}") for number in range(5))).message.endswith("reason 2; and 2 more findings")
