"""YAML files are read as snakeyaml-engine reads them, which is made for YAML 1.2.

Decisions: scalars are texts as written, except null, true and false; ``<<`` merges mappings, as in YAML 1.1; a key given twice, a key
that is a list or a mapping, tags that are not of the core schema and nodes that contain themselves are refused, and so are what PyYAML
knows of YAML 1.1 only: tabs and, in flow style, question marks in plain scalars, and raw characters that ended a line there. It is
more lenient with a plain ``-`` or ``...`` in flow style, and with a directive after an empty document.
"""

import re

import pytest

from kops.config.yaml_files import parse_documents
from kops.core.errors import ConfigError
from support.java_judge import COUNTS, portions, random_of, text_of_units

SCALARS = (
    *("0100", "007", "12:30", "1:20:30", "on", "off", "yes", "No", "y", "n", "1_000", "1e3", "1E-3", "0x1F", "0o17", "0b1", "017", "1.50"),
    *(".inf", "-.INF", ".nan", ".5", "5.", "+1", "-0", "true", "True", "tRUE", "FALSE", "null", "Null", "nUll", "~", "", "=", "<", "."),
    *("2026-11-20", "2026-11-20T10:00:00Z", "a", "a b", "a:b", "a#b", "a #b", "http://a/b", "${x}", "é", "\U0001f600", "'it''s'", "''"),
    *("' a '", '"\\t\\u00e9\\x41"', '"a\\\n  b"', '"0100"', "!!str 1", "!!int 1", "!!float 1", "!!bool true", "!!null ''", "! 12"),
    *("a\n  b", "a\n\n  b", "1\n  2", "'a\n  b'", '"a\n\n  b "'),
)
BLOCKS = ("|\n  a\n   b\n", ">\n  a\n  b\n\n  c\n", "|-\n  a\n", ">+\n  a\n\n", "|2\n   a\n", "&x a", "&x [a]")
HOSTILE = (
    *("a\tb", "\u2028", "\x85", "\x07", "!a", "*x", "!!int a", "!!set {a}", "- a", "? a", "---", "...", "#", "%a", "@a", "`a", "a, b"),
    *("[a", "}", "-", "a: b", "a?b", "&a [*a]", "|\n a\n  b\nc", "'a", '"\\q"', "[a, -]", "{a}", "{a: b, c}", "[a: b]", "{? a}"),
)
KEYS = (
    *("a", "b", "c", "d", "e", "retention.ms", "0100", "on", "1", "'q r'", '"q"', "x y", "é", "-a", "12:30", "f", "g", "tasks.max", "no"),
    *("true", "<<", "? x", "[a]", "~"),
)
WHOLE = ("", "\n", "---\n", "---\n---\n", "# c\n", "%YAML 1.2\n---\n", "...\n", " ", "\t", "--- a\n", "\ufeff", "- \n", "\r\n")


def _key(random):
    return random.choice(KEYS if random.random() < 0.1 else KEYS[:-5])


def value_of(random, indent, flow=False, depth=0):
    kind = random.random()
    if depth < 3 and kind < 0.12:
        return f"[{', '.join(value_of(random, indent, True, depth + 1) for _ in range(random.randint(0, 3)))}]"
    if depth < 3 and kind < 0.24:
        entries = (f"{_key(random)}: {value_of(random, indent, True, depth + 1)}" for _ in range(random.randint(0, 3)))
        return f"{{{', '.join(entries)}}}"
    if not flow and depth < 3 and kind < 0.4:
        return "\n" + block_of(random, indent + 2, depth + 1)
    text = random.choice(HOSTILE) if random.random() < 0.04 else random.choice(SCALARS if flow else (*SCALARS, *BLOCKS))
    return text.replace("\n", "\n" + " " * indent) if random.random() < 0.9 else text


def block_of(random, indent, depth=0):
    space = " " * indent
    if random.random() < 0.3:
        return "\n".join(f"{space}- {value_of(random, indent, depth=depth)}" for _ in range(random.randint(1, 3)))
    lines = (f"{space}{_key(random)}: {value_of(random, indent, depth=depth)}" for _ in range(random.randint(1, 4)))
    return "\n".join(lines)


def text_of(random):
    documents = [block_of(random, 0) + "\n" if random.random() < 0.9 else random.choice(WHOLE) for _ in range(random.choice([1, 1, 1, 2]))]
    text = "---\n".join(documents)
    return text.replace("\n", "\r\n") if random.random() < 0.1 else text


def as_kops(node):
    """Return what a file with this node means to kops."""
    kind, *rest = node
    if kind == "list":
        return [as_kops(each) for each in rest]
    if kind == "map":
        return {as_kops(key): as_kops(value) for key, value in rest}
    text = text_of_units(rest[0])
    return {"null": None, "bool": text.lower() == "true"}.get(kind.rpartition(":")[2], text)


DECIDED = (
    r"given twice|unhashable key|constructor for the tag|contains itself|is not a valid|for merging|has to be escaped"
    r"|'\\t' that cannot start|but got '\?'"
)
LENIENT = re.compile(r"[\[, {](?:-|\.\.\.)[\],}]|%YAML")


@pytest.mark.parametrize("count", COUNTS)
def test_yaml(java_judge, count):
    read, refusals = 0, []
    for texts in portions(text_of(each) for each in random_of("yaml", count)):
        for text, answer in zip(texts, java_judge.ask("YamlTexts", texts), strict=True):
            try:
                found = parse_documents(text, "f")
            except ConfigError as refused:
                if "ok" in answer and not re.search(DECIDED, refused.message):
                    refusals.append((text, refused.message))
                continue
            if "<<" in text:
                continue
            if "ok" not in answer:
                assert LENIENT.search(text), (text, found, answer)
                continue
            assert found == [as_kops(each) for each in answer["ok"]], ascii(text)
            read += 1
    assert not refusals, "\n\n".join(f"{text!a}: {message}" for text, message in refusals[:10]) + f"\n{len(refusals)}"
    assert read > count // 2
