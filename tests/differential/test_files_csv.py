"""Apache's CSV of offsets is read as kafka-consumer-groups reads it.

Decisions: kops refuses what Jackson turns into another number (a field that is empty or not there is 0, 1.5 is 1), an offset below 0,
two offsets of one partition, of which the last counts there, and blanks behind a quote. It reads empty lines, which Jackson refuses.
"""

import re

import pytest

from kops.core.errors import UsageProblem
from kops.core.offsets.apache_csv import read_offsets
from support.java_judge import COUNTS, portions, random_of

NAMES = ("orders", "a.b", "t-1", '"quoted"', '"with,comma"', '"a""b"', "a b", " a", "a ", "é", "x" * 30, '"a', 'a"b', "'a'", "", "#a", "1")
NUMBERS = ("0", "1", "12", "007", "+1", " 3", "4 ", '"5"', "2147483647", "2147483648", "9223372036854775807", "9223372036854775808")
NO_NUMBERS = ("", "-1", "1.5", "1e3", "x", "0x1", "1_0", "\u0661", "null", "12a")
ENDS = ("\n", "\n", "\n", "\r\n", "", "\n\n", " \n", "\n#\n")


def line_of(random, grouped):
    def number(rare):
        return random.choice(NO_NUMBERS) if random.random() < rare else random.choice(NUMBERS[:4] if random.random() < 0.7 else NUMBERS)

    names = [random.choice(NAMES[:3] if random.random() < 0.7 else NAMES) for _ in range(2 if grouped else 1)]
    fields = [*names, number(0.04), number(0.04)]
    if random.random() < 0.03:
        fields = fields[:-1] if random.random() < 0.5 else [*fields, "1"]
    return ",".join(fields)


def text_of(random):
    grouped = random.random() < 0.4
    lines = (line_of(random, grouped if random.random() < 0.97 else not grouped) for _ in range(random.randint(1, 4)))
    return "".join(line + (random.choice(ENDS) if random.random() < 0.3 else "\n") for line in lines)


@pytest.mark.parametrize("count", COUNTS)
def test_offsets(java_judge, count):
    read = 0
    for texts in portions(text_of(each) for each in random_of("csv", count)):
        for text, answer in zip(texts, java_judge.ask("OffsetsCsv", texts), strict=True):
            try:
                found = read_offsets(text)
            except UsageProblem as refused:
                decided = re.search(
                    r"second offset|has \d+ fields|with and without|has no offset of 0|names no partition|has no offsets|not valid CSV",
                    refused.message,
                )
                assert "error" in answer or decided, (text, refused.message, answer)
                continue
            if "error" in answer:
                assert re.search(r"^\s*$", text, re.MULTILINE), (text, found, answer)
                continue
            mine = [
                [*([row.group] if row.group is not None else []), row.partition.topic, str(row.partition.partition), str(row.offset)]
                for row in found
            ]
            assert mine == list(map(list, dict.fromkeys(map(tuple, answer["ok"])))), text
            read += 1
    assert read > count // 3
