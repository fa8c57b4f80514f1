"""Properties files are read as ``java.util.Properties`` reads them.

Two decisions: a surrogate without its pair, which no UTF-8 can hold, becomes U+FFFD; and ``read_properties`` refuses a key with two values,
and characters in UTF-8, both of which Java reads as something that they do not seem to be.
"""

import pytest

from kops.config.properties import parse_properties, read_properties
from kops.core.errors import ConfigError
from support.java_judge import COUNTS, portions, random_of, text_of_units

PIECES = (
    *("a", "b", "key", "value", "1", ".", "-", " ", "  ", "\t", "\f", "\n", "\r", "\r\n", "\n\n", "=", ":", " = ", "#", "!", "\\", "\\\\"),
    *(
        "\\\n",
        "\\\r\n",
        "\\\r",
        "\\\n  ",
        "\\ ",
        "\\=",
        "\\:",
        "\\#",
        "\\!",
        "\\t",
        "\\n",
        "\\r",
        "\\f",
        "\\b",
        "\\q",
        '\\"',
        '"',
        "'",
        ";",
    ),
    *(
        "\\u0041",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud83d",
        "\\ude00",
        "\\u12",
        "\\u",
        "\\uzzzz",
        "\\U0041",
        "\\u000a",
        "\\u0020",
        "\\\\u0041",
    ),
    *("\xa0", "\x85", "\x1c", "\x0b", "\xe9", "\xff", "\x00", "\x1a", "\u00c3\u00a9", "a=b", "k v", "k\\\n=v", "# c\n", "  ! c\n", "\\\n#"),
)


def text_of(random):
    return "".join(random.choices(PIECES, k=random.randint(0, 12)))


def whole(text):
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.parametrize("count", COUNTS)
def test_properties(java_judge, tmp_path, count):
    read, file = 0, tmp_path / "file.properties"
    for texts in portions(text_of(each) for each in random_of("properties", count)):
        for text, answer in zip(texts, java_judge.ask("PropertiesTexts", [text.encode("latin-1").hex() for text in texts]), strict=True):
            file.write_bytes(text.encode("latin-1"))
            try:
                found = parse_properties(text)
            except ConfigError as refused:
                assert "error" in answer, (text, refused.message)
                continue
            assert "ok" in answer, (text, answer)
            assert found == {whole(text_of_units(key)): whole(text_of_units(value)) for key, value in answer["ok"]}, ascii(text)
            read += 1
            try:
                assert read_properties(file) == found, text
            except ConfigError as refused:
                assert "given twice" in refused.message or "UTF-8" in refused.message, text
    assert read > count // 2
