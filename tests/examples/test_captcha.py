"""``examples/captcha``: a left join of tables, with deletes on both sides, is lost, or damaged, and comes back."""

import pytest

from support import twins
from support.broken_copies import assert_equal, break_and_rebuild
from support.examples import process
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

START = 1_700_000_000_000
SITES = {"sites": [Record(b"shop", b"ann", START), Record(b"bank", b"bob", START)]}


def table(topic, first, **rows):
    """Rows of a table; None deletes."""
    records = [Record(key.encode(), value and value.encode(), START + first + at) for at, (key, value) in enumerate(rows.items())]
    return {topic: records}


def test_unanswered_requests_stay(copies):
    settings = {"processing.guarantee": "exactly_once_v2", "group.protocol": "classic"}
    options = {"inputs": ["requests", "answers"], "outputs": ["checked-requests"], "settings": settings}
    twin, wiped, stale = copies("captcha", "CaptchaApplication", **options)
    three = [twin, wiped, stale]
    for copy in three:
        copy.produce(SITES)
    process(three, table("requests", 0, a="shop", b="shop", c="bank", d="blog"), table("answers", 10, a="passed", c="failed", x="passed"))
    checked = {key: entry.value for key, entry in twin.view("checked").items()}
    assert checked == {b"a": b"shop passed", b"b": b"shop open", b"c": b"bank failed", b"d": b"blog open"}
    earlier = twins.keep(stale.state)
    process(three, table("answers", 20, a=None, b="passed"), table("requests", 30, c=None, e="bank", f="shop"))
    checked = {key: entry.value for key, entry in twin.view("checked").items()}
    assert checked == {b"a": b"shop open", b"b": b"shop passed", b"d": b"blog open", b"e": b"bank open", b"f": b"shop open"}
    assert not [topic for topic in twin.cluster.topics(twin.prefix) if "sites" in topic and topic.endswith("-changelog")]
    break_and_rebuild(wiped, stale, twin, earlier)
    process(three, table("answers", 40, e="passed", f=None, x=None), table("requests", 50, b=None, d="shop"))
    for broken in (wiped, stale):
        assert_equal(broken, twin)
    assert {values[-1] for (_topic, key), values in twin.output().items() if key == b"d"} == {b"shop open ann"}
