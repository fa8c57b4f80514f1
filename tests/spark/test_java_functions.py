"""What kops' own functions in Spark SQL give is what Java gives."""

import pytest

from kops.spark.stores.prepare import prepare

pytestmark = [pytest.mark.spark, pytest.mark.streams]

TEXTS = ["", " ", "a", "hello!", "!hello", "a,,b,,", ",,", "a b  c ", "  x", "Ünï!cödé", "a\nb\n", "x1y22z"]
REGEXES = [" ", ",", "\\W+", "", "\\d", "[,!]", "z|$"]


def test_java_split_is_that_of_java(spark, oracle):
    from kops.spark.stores.prepare import define_functions

    cases = [(text, regex) for regex in REGEXES for text in TEXTS]
    wanted = [answer["ok"] for answer in oracle.formats("java_split", cases)]
    define_functions(spark, "java_split(text, regex)")
    frame = spark.createDataFrame([(at, *case) for at, case in enumerate(cases)], "at int, text string, regex string").coalesce(1)
    found = frame.selectExpr("at", "java_split(text, regex) as parts").orderBy("at").collect()
    wrong = [(case, list(row.parts), want) for case, row, want in zip(cases, found, wanted, strict=True) if list(row.parts) != want]
    assert not wrong


def test_words_are_those_of_java_in_every_expression(store_of, records_of):
    fields = {"explode": "java_split(value, '\\\\W+')", "where": "size(java_split(value, 'x')) = 1", "key_by": "java_split(value, 'z')[0]"}
    file, store = store_of({"count": True}, value="string", **fields)
    records = records_of([(0, b"k", b"hello!", 1), (0, b"k", b"a xx b", 2), (0, b"k", b"!", 3)])
    kept = prepare(records, file, store).kept().collect()
    assert sorted(bytes(row.key) for row in kept) == [b"a", b"b", b"hello"]
