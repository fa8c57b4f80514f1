"""What the libraries' own classes write is what the unit tests of the headers know."""

import pytest

from kops.core.errors import MissingRequirement
from kops.formats.dead_letters import dead_letter
from support.dead_letters import PROGRAMS, made_by
from support.dead_letters.recorded import RECORDED, WITH_TIMES


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS)
def test_libraries_write_what_is_known(program, tmp_path):
    try:
        found = made_by(program, tmp_path)
    except MissingRequirement as missing:
        pytest.skip(str(missing))
    assert found
    for family, headers in found.items():
        known = RECORDED[family]
        assert [name for name, _ in headers] == [name for name, _ in known]
        traces = [name for name, _ in headers if "stacktrace" in name]
        same = [pair for pair in headers if pair[0] not in (*WITH_TIMES, *traces)]
        assert same == [pair for pair in known if pair[0] not in (*WITH_TIMES, *traces)]
        assert (dead_letter(headers).origin, dead_letter(headers).cause) == (dead_letter(known).origin, dead_letter(known).cause)
