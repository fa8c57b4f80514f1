import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UsageProblem
from kops.core.models import TopicPartition
from kops.core.offsets.apache_csv import OffsetRow, read_offsets, write_offsets

topics = st.from_regex(r"[a-zA-Z0-9._-]{1,40}", fullmatch=True)
groups = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=40)  # Python 3.10 reads no NUL
places = st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1))
tables = st.dictionaries(places, st.integers(0, 2**63 - 1), min_size=1)


@given(tables)
def test_offsets_of_one_group_come_back(table):
    rows = [OffsetRow(None, partition, offset) for partition, offset in table.items()]
    assert read_offsets(write_offsets(rows)) == rows


@given(st.dictionaries(groups.filter(lambda name: not name.startswith("\ufeff")), tables, min_size=1, max_size=4))
def test_offsets_of_many_groups_come_back(tables_by_group):
    rows = [OffsetRow(group, p, offset) for group, table in tables_by_group.items() for p, offset in table.items()]
    assert read_offsets(write_offsets(rows)) == rows


def test_what_apache_writes():
    written = '"grpx\' tick",orders,0,12\n" lead","a-name-of-more-than-24-ch",1,3\n"gr,""q",orders,2,0\n\n'
    rows = read_offsets(written)
    assert [(row.group, str(row.partition), row.offset) for row in rows] == [
        ("grpx' tick", "orders:0", 12),
        (" lead", "a-name-of-more-than-24-ch:1", 3),
        ('gr,"q', "orders:2", 0),
    ]
    assert write_offsets(rows) == written.rstrip("\n") + "\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no offsets"),
        ("\n\n", "has no offsets"),
        ("topic,partition,offset\n", "line 1 of f.csv names no partition"),
        ("orders,0,5\norders,0\n", "line 2 of f.csv has 2 fields"),
        ("orders,0,-1\n", "line 1 of f.csv has no offset of 0 or more: '-1'"),
        ("orders,0,1.5\n", "has no offset"),
        ("orders,x,1\n", "names no partition"),
        (",0,1\n", "names no partition"),
        (f"orders,0,{2**63}\n", "has no offset"),
        (f"orders,0,{'9' * 5000}\n", "has no offset"),
        ("orders,0,1\norders,0,2\n", "line 2 of f.csv gives orders:0 a second offset"),
        ("orders,0,1\ng,orders,0,1\n", "with and without a group"),
        ('orders,"0,1\n', "is not valid CSV"),
    ],
)
def test_broken_files_name_the_line(text, says):
    with pytest.raises(UsageProblem) as problem:
        read_offsets(text, name="f.csv")
    assert says in problem.value.message


def test_line_ends_and_a_byte_order_mark_do_no_harm():
    assert [row.offset for row in read_offsets("\ufefforders,0,1\r\norders, 1, 2\r\n")] == [1, 2]


@given(st.text(max_size=60))
def test_any_text_is_offsets_or_a_usage_problem(text):
    with contextlib.suppress(UsageProblem):
        read_offsets(text)
