"""Properties files are read as Java reads them (tests/differential), and refused where Java reads something that was not meant."""

import pytest

from kops.config.properties import read_properties
from kops.core.errors import ConfigError


def read(tmp_path, data):
    file = tmp_path / "sink.properties"
    file.write_bytes(data)
    return read_properties(file)


def test_values_are_the_texts_as_written(tmp_path):
    data = b"\xef\xbb\xbfname=sink\nsize: 0100\non yes\nempty=\npassword=0123\nlatin=\xe9\nsame=1\nsame=1\n"
    assert read(tmp_path, data) == {
        "name": "sink", "size": "0100", "on": "yes", "empty": "", "password": "0123", "latin": "é", "same": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a=1\na=2\n", "a is given twice"),
        ("name=x\nquery=ü\n".encode(), "query has characters in UTF-8"),
        (b"password=secret \\u12\n", "password: "),
    ],
)
def test_what_java_would_read_otherwise_is_refused_by_its_key(tmp_path, data, message):
    with pytest.raises(ConfigError, match=message) as refused:
        read(tmp_path, data)
    assert refused.value.message.startswith(str(tmp_path / "sink.properties"))
    assert "secret" not in refused.value.message


def test_a_comment_may_be_in_utf8(tmp_path):
    assert read(tmp_path, "# ü\nname=x\n".encode()) == {"name": "x"}
