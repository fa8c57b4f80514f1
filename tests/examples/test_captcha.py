"""``examples/captcha``: left joins of a count with a reduce, and of plain tables, are lost, or damaged, and come back."""

import shutil
from dataclasses import dataclass

import pytest

from support import twins
from support.broken_copies import LOCAL_STATES, assert_equal, assert_same_stores, break_and_rebuild, rebuild_by_program
from support.examples import Copy, process
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

START = 1_700_000_000_000
SITES = {"sites": [Record(b"shop", b"ann", START), Record(b"bank", b"bob", START)]}


def records(topic, first, *rows):
    """Records of a topic, a millisecond apart; None is a null value."""
    return {topic: [Record(key.encode(), value and value.encode(), START + first + at) for at, (key, value) in enumerate(rows)]}


def table(topic, first, **rows):
    """Rows of a table; None deletes."""
    return records(topic, first, *rows.items())


def checked(copy):
    return {key.decode(): entry.value.decode() for key, entry in copy.view("checked").items()}


def clicks(first, browsers):
    """Actions, one for each letter."""
    return records("actions", first, *((browser, "click") for browser in browsers))


@dataclass
class WithJoin(Copy):
    """A copy whose state file does not have the join."""

    @property
    def changelogs(self):
        return {**super().changelogs, "checked": f"{self.application}-checked-changelog"}


def last_output(copy):
    return {place: values[-1] for place, values in copy.output().items()}


def test_a_count_joined_with_a_reduce_comes_back_by_its_program(copies):
    """A null value counts as neither an action nor an answer, and deletes nothing."""
    options = {"inputs": ["actions", "answers"], "outputs": ["checked-browsers"], "kind": WithJoin}
    twin, broken = both = copies("captcha", "CaptchaApplication", 2, **options)
    process(
        both,
        clicks(0, "aabcd") | table("answers", 10, a="failed", c="failed", x="passed"),
        clicks(20, "abbee") | records("answers", 30, ("a", "passed"), ("c", None), ("b", "failed"), ("b", "passed")),
    )
    assert checked(twin) == {"a": "3 passed", "b": "3 passed", "c": "1 failed", "d": "1 open", "e": "2 open"}
    for topic in broken.changelogs.values():
        broken.cluster.empty(topic)
    shutil.rmtree(broken.state)
    rebuild_by_program(broken)
    assert_same_stores(broken, twin)
    broken.kops("state", "verify", broken.state_file).ok()
    process(both, clicks(40, "acdfx") | table("answers", 50, d="passed", e="failed"))
    after = {"a": "4 passed", "b": "3 passed", "c": "2 failed", "d": "2 passed", "e": "2 failed", "f": "1 open", "x": "1 passed"}
    assert checked(twin) == after
    assert_same_stores(broken, twin)
    assert last_output(broken) == last_output(twin)  # what came between depends on the order in which the two topics arrive


@LOCAL_STATES
def test_unanswered_requests_stay(copies, local_state):
    options = {"inputs": ["requests", "answers"], "outputs": ["checked-requests"], "state_file_name": "state-requests.yaml"}
    twin, broken = both = copies("captcha", "RequestsApplication", 2, **options)
    for copy in both:
        copy.produce(SITES)
    process(both, table("requests", 0, a="shop", b="shop", c="bank", d="blog"), table("answers", 10, a="passed", c="failed", x="passed"))
    assert checked(twin) == {"a": "shop passed", "b": "shop open", "c": "bank failed", "d": "blog open"}
    earlier = twins.keep(broken.state)
    process(both, table("answers", 20, a=None, b="passed"), table("requests", 30, c=None, e="bank", f="shop"))
    assert checked(twin) == {"a": "shop open", "b": "shop passed", "d": "blog open", "e": "bank open", "f": "shop open"}
    assert not [topic for topic in twin.cluster.topics(twin.prefix) if "sites" in topic and topic.endswith("-changelog")]
    break_and_rebuild(broken, twin, local_state, earlier)
    process(both, table("answers", 40, e="passed", f=None, x=None), table("requests", 50, b=None, d="shop"))
    assert_equal(broken, twin)
    assert {values[-1] for (_topic, key), values in twin.output().items() if key == b"d"} == {b"shop open ann"}
