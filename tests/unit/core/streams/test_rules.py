"""Rules of Kafka Streams that a state file and a capture state in the same words."""

import pytest

from kops.core.streams.rules import (
    flushed_sessions,
    forgotten_times,
    late_records,
    lost_records,
    mixed_up_foreign_keys,
    record_order,
)
from support.verdicts import DOUBT, OBSTACLE, REMARK, kinds


def test_times_are_no_reason_to_doubt_a_value_unless_it_depends_on_them():
    stores = ["totals", "a table that is joined"]
    assert kinds([flushed_sessions(), forgotten_times(stores), forgotten_times(stores, only_times=False)]) == [REMARK, REMARK, DOUBT]
    assert forgotten_times(stores).summary.endswith("until the application is restarted or they are full: totals, a table that is joined")


@pytest.mark.parametrize(
    ("version", "mixes_up"),
    [((3, 9, 0), True), ((3, 9, 1), False), ((4, 0, 0), True), ((4, 0, 1), False), ((4, 1, 0), False), ((3, 7, 2), True)],
)
def test_releases_whose_foreign_key_joins_go_wrong(version, mixes_up):
    text = ".".join(map(str, version))
    found = mixed_up_foreign_keys(version, text, ["first", "second"])
    assert kinds(found) == [DOUBT] * mixes_up
    assert not mixes_up or found[0].summary.startswith(f"kafka-streams {text} joins a row with nothing if the answer")
    assert not mixes_up or found[0].summary.endswith("(KAFKA-18713, KAFKA-16407; fixed in 3.9.1, 4.0.1 and 4.1): first, second")
    assert not mixes_up or mixed_up_foreign_keys(version, text)[0].summary.endswith("4.0.1 and 4.1)")


def test_lost_records_cannot_be_computed_and_the_places_are_named():
    one, several = lost_records(["in:0 at offset 7"]), lost_records([f"in:{number}" for number in range(6)])
    assert kinds([one, several]) == [OBSTACLE, OBSTACLE]
    assert one.summary == "older records of the input are gone: in:0 at offset 7 begins above offset 0"
    assert several.summary == "older records of the input are gone: in:0, in:1, in:2, in:3 and 2 more partitions begin above offset 0"
    windows = lost_records(["in"], windows=1_200)
    assert windows.summary == "older records of the input are gone, and 1,200 windows may have had some: in begins above offset 0"
    assert windows.facts["windows"] == 1_200


def test_an_order_that_no_log_has_is_a_doubt_about_the_keys_that_depend_on_it():
    one, several = record_order(1, 1, ["two tasks write into r"], "k1"), record_order(2, 1_000, ["a", "b"])
    assert kinds([one, several]) == [DOUBT, DOUBT]
    assert one.summary == "1 of 1 key depends on the order of records, such as k1: two tasks write into r"
    assert several.summary == "2 of 1,000 keys depend on the order of records: a; b"


def test_nothing_settles_late_records():
    found = late_records("3 records came late")
    assert kinds([found]) == [DOUBT]
    assert not found.settled_by
    assert found.summary.startswith("3 records came late: an application that was restarted just before one of them")
