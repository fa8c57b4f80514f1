"""Commands in sentences, completed so that they reach the same cluster."""

import pytest

from kops.cli.frame.main import SECTIONS
from kops.core.suggestions import completed, words_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see `kops groups lag g`", "see `kops groups lag g -c 'my prod'`"),
        ("`kops undo X` or `kops journal finish X`", "`kops undo X -c 'my prod'` or `kops journal finish X -c 'my prod'`"),
        ("`kops journal list` shows them", "`kops journal list` shows them"),
        ("`kops context list` and `kops doctor`", "`kops context list` and `kops doctor`"),
        ("try `kops topics list --help`", "try `kops topics list --help`"),
        ("`kops topics list -c other`", "`kops topics list -c other`"),
        ("`topics` of kops", "`topics` of kops"),
    ],
)
def test_completed(text, expected):
    assert completed(text, ["-c", "my prod"]) == expected
    assert completed(text, []) == text


@pytest.mark.parametrize("noun", [noun for section, nouns in SECTIONS.items() if section != "This machine" for noun in nouns])
def test_every_noun_of_a_cluster_is_completed(noun):
    if noun != "journal":
        assert completed(f"see `kops {noun} x`", ["-c", "prod"]) == f"see `kops {noun} x -c prod`"


@pytest.mark.parametrize("noun", SECTIONS["This machine"])
def test_nouns_of_this_machine_are_left_alone(noun):
    assert completed(f"see `kops {noun}`", ["-c", "prod"]) == f"see `kops {noun}`"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["topics", "list"], []),
        (["-c", "prod", "topics", "list"], ["-c", "prod"]),
        (["topics", "list", "--context=prod"], ["-c", "prod"]),
        (["topics", "list", "-Bhost:1", "--bootstrap-server", "host:2"], ["-B", "host:2"]),
        (["topics", "list", "-X", "a=b", "--property", "c=d", "--command-config=f"], ["-X", "a=b", "-X", "c=d", "--command-config", "f"]),
        (["records", "produce", "--", "-c", "x"], []),
        (["topics", "list", "-c"], []),
    ],
)
def test_words_of(arguments, expected):
    assert words_of(arguments) == expected
