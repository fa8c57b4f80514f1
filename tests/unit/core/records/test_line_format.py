import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UsageProblem
from kops.core.records.line_format import compile_format
from kops.core.records.models import Record

RECORD = Record("orders", 3, 42, 1_700_000_000_123, b"k\xff", b"some value", (("a", b"1"), ("n", None)))


def write(text, record=RECORD):
    return written_of(compile_format(text), record)


def written_of(form, record):
    return form.write([[getattr(record, part) for part in form.raw_parts]])


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (r"%t %p %o\n", b"orders 3 42\n"),
        (r"%k\t%s", b"k\xff\tsome value"),
        ("%T %K %S", b"1700000000123 2 10"),
        ("%h", b"a=1,n=NULL"),
        ("%R", b"\x00\x00\x00\x0a"),
        (r"100%% \\ \r\0\x41\xff", b"100% \\ \r\0A\xff"),
        ("", b""),
        ("größe", "größe".encode()),
    ],
)
def test_letters(text, written):
    assert write(text) == written


def test_what_is_not_there():
    nothing = Record("t", 0, 0, None, None, None)
    assert write("%k|%s|%K|%S|%T|%h", nothing) == b"||-1|-1|-1|"
    assert write("%R", nothing) == b"\xff\xff\xff\xff"


def test_many_at_once():
    records = [RECORD, Record("t", 0, 0, None, None, b""), Record("t", 1, 7, 5, b"", None, (("h", b"%d"),))]
    for text in (r"%t:%p:%o %T %k=%s %h %K %S %R%%\n", "%s", "%k%k", "100%%", "-"):
        form = compile_format(text)
        rows = [[getattr(record, part) for part in form.raw_parts] for record in records]
        assert form.write(rows) == b"".join(write(text, record) for record in records)
        assert form.write([]) == b""


@pytest.mark.parametrize("text", ["%x", "%", "a%", r"\q", "\\", r"\x4", r"\xzz"])
def test_what_is_no_format(text):
    with pytest.raises(UsageProblem):
        compile_format(text)


@given(st.text(max_size=30))
def test_texts_without_signs_stay_as_they_are(text):
    plain = text.replace("%", "%%").replace("\\", "\\\\")
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert write(plain) == text.encode()
