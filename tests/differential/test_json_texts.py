"""JSON as Jackson reads it, each number and each repeated name as it is written.

What differs by decision: kops reads UTF-8 only and nests up to 200 levels. It takes numbers of any length and any exponent up to 10^18,
where Jackson stops at 1,000 digits unless it is set otherwise and at 2^31, and half a surrogate pair in a name, as Jackson does in a text.
"""

import json

import pytest

from kops.core.errors import UndecodableRecord
from kops.core.json_values import RepeatedNames
from kops.formats.registry import FORMATS
from support.java_judge import COUNTS, portions, random_of

NAMES = ("a", "b", "price", "a b", "\u00fc", "\U0001f600", "", "1")
PARTS = ("[", "]", "{", "}", ",", ":", '"', "\\", "0", "-", ".", "e", "1", " ", "\t", "\n", "NaN", "tru", "\x00", "\x7f", "\ufeff", "//")


def number_of(random):
    whole = random.choice(["0", str(random.randint(1, 9)), str(random.randint(10, 10 ** random.randint(2, 60)))])
    small = f".{0:0{random.randint(1, 30)}d}1"
    fraction = random.choice(["", "", f".{random.randint(0, 10 ** random.randint(1, 40))}", ".0", ".50", small])
    exponent = f"{random.choice('eE')}{random.choice(['', '+', '-'])}{random.choice(['0', '00', ''])}{random.randint(0, 400)}"
    exponent = random.choice(["", "", "", exponent])
    return f"{random.choice(['', '-'])}{whole}{fraction}{exponent}"


def text_of(random):
    letters = "".join(random.choice('abc\u00e9\u4e2d\U0001f600/\\"\n\u2028\x7f') for _ in range(random.randint(0, 6)))
    written = json.dumps(letters, ensure_ascii=random.random() < 0.5)
    return random.choice([written, written, written, written[:-1] + random.choice(["\\ud83d", "\\udc00", "\\/", "\\b\\f"]) + '"'])


def value_of(random, depth=0):
    kind = random.randint(0, 5 if depth > 4 else 9)
    if kind < 3:
        return number_of(random)
    if kind < 5:
        return text_of(random)
    if kind == 5:
        return random.choice(["true", "false", "null"])
    space = random.choice(["", "", " ", "\n\t", "\r\n"])
    inner = [value_of(random, depth + 1) for _ in range(random.randint(0, 4))]
    if kind == 6:
        return f"[{space}{f'{space},'.join(inner)}]"
    return "{" + f"{space},{space}".join(f"{json.dumps(random.choice(NAMES))}{space}:{space}{each}" for each in inner) + space + "}"


def case_of(random):
    """Return JSON, in one of four cases damaged."""
    text = value_of(random)
    while random.random() < 0.25:
        at = random.randint(0, len(text))
        text = random.choice([text[:at] + random.choice(PARTS) + text[at:], text[:at] + text[at + 1 :]])
    data = text.encode()
    if random.random() < 0.03 and data:
        at = random.randrange(len(data))
        data = data[:at] + bytes([random.randint(128, 255)]) + data[at:]
    if b"\0" in data[:4]:
        return b"\0"  # Jackson would take it for UTF-16 or UTF-32
    return b"\xef\xbb\xbf" * (random.random() < 0.02) + data


def in_the_form_of_the_judge(value):
    if isinstance(value, str):
        return ["text", units(value)]
    if isinstance(value, list):
        return ["list", *map(in_the_form_of_the_judge, value)]
    if isinstance(value, dict):
        return ["object", *([units(name), in_the_form_of_the_judge(each)] for name, each in value.items())]
    if value is None or isinstance(value, bool):
        return [json.dumps(value)]
    return ["number", str(value)]


def units(text):
    return text.encode("utf-16-be", "surrogatepass").hex()


def by_kops(data):
    try:
        return {"ok": in_the_form_of_the_judge(FORMATS["json"].decode(data))}
    except UndecodableRecord as wrong:
        return {"error": str(wrong)}


@pytest.mark.parametrize("count", COUNTS)
def test_jackson_reads_the_same(java_judge, count):
    repeated, refused = 0, 0
    for cases in portions(case_of(random) for random in random_of("json", count)):
        for data, java in zip(cases, java_judge.ask("JsonTexts", [data.hex() for data in cases]), strict=True):
            kops = by_kops(data)
            if "surrogate" in java.get("error", "") and "in field name" in java["error"]:
                continue
            assert ("error" in kops) == ("error" in java), f"{data!r}: kops {kops}, Java {java}"
            assert kops.get("ok") == java.get("ok"), f"{data!r}"
            refused += "error" in java
            repeated += "ok" in java and isinstance(FORMATS["json"].decode(data), RepeatedNames)
    assert 0 < refused < count / 2
    assert repeated, "no case repeats a name"
