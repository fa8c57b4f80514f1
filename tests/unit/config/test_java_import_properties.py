"""Java's properties files are read as Java reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from javaproperties import dumps

from kops.config.properties import parse_properties
from kops.core.errors import ConfigError

from .java_check import ask_java

# A surrogate alone is not a character, and Java writes it as "?".
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)

TRICKY = r"""
# a comment
! another
   # and one with space before
plain=value
spaces   =   value with spaces at the end~~
colon:value
blank value after blank
tab	value
empty=
alone
 \ leading = \ space
key\ with\ spaces = v
key\:with\=signs=a=b:c
continued = one \
            two, \
   # not a comment
even = two backslashes \\
odd\\ = three \\\
   joined
unicode = \u00e9\u20AC\ud83d\ude00
escapes = \t\n\r\f\q\"
latin = é ü
repeated = first
repeated = second
jaas = M required username="a" password="b\\"c\\\\d";
last = no newline \
""".replace("~~", "  ")


def test_tricky_ones_as_java_reads_them(kafka_jar_files, tmp_path):
    """The expected values come from java.util.Properties itself; it assumes Latin-1."""
    files = []
    for name, text in {"unix": TRICKY, "windows": TRICKY.replace("\n", "\r\n"), "mac": TRICKY.replace("\n", "\r")}.items():
        file = tmp_path / f"{name}.properties"
        file.write_bytes(text.encode("latin-1"))
        files.append(file)
    answers = ask_java("read", files, kafka_jar_files)
    for file in files:
        assert parse_properties(file.read_bytes().decode("latin-1")) == answers[file.name]
    assert answers["unix.properties"]["continued"] == "one two, # not a comment"


def test_what_is_written_java_reads(kafka_jar_files, tmp_path):
    wanted = {"a b": " x ", "k:=#!": "v:=#!", "é€😀": "é€😀\n\t\\", "": "empty key", "empty": "", "password": 'p"a\\ss '}
    file = tmp_path / "written.properties"
    file.write_text(dumps(wanted), encoding="ascii")
    assert ask_java("read", [file], kafka_jar_files)["written.properties"] == wanted


@given(st.dictionaries(TEXT, TEXT, max_size=5))
def test_round_trip(properties):
    assert parse_properties(dumps(properties)) == properties


@given(TEXT)
def test_any_text_is_read_or_refused(text):
    try:
        parse_properties(text)
    except ConfigError as error:
        assert "hexadecimal" in error.message


def test_broken_escape_names_the_key_and_not_the_value():
    with pytest.raises(ConfigError, match=r"^sasl.jaas.config: ") as refused:
        parse_properties("sasl.jaas.config = geheim \\u12")
    assert "geheim" not in str(refused.value)
