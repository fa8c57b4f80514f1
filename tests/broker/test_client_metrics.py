"""Subscriptions to client metrics on a real broker; Apache's own tool reads what is there."""

import pytest

from support.json_keys import as_pinned

pytestmark = pytest.mark.broker

APACHE = "org.apache.kafka.tools.ClientMetricsCommand"


def test_subscriptions_are_set_listed_deleted_and_restored(kops, apache, unique):
    name = unique("cm")
    kops("client-metrics", "set", name, "--metrics", "org.apache.kafka.consumer.", "--interval", "30s", "--yes").ok()
    kops("client-metrics", "set", name, "--match", "client_id=billing.*", "--yes").ok()
    shown = apache.run("--describe", "--name", name, APACHE)
    assert all(text in shown for text in ("interval.ms=30000", "client_id=billing.*", "org.apache.kafka.consumer."))
    row = {"name": name, "metrics": "org.apache.kafka.consumer.", "interval_ms": "30000", "match": "client_id=billing.*"}
    assert as_pinned("kops client-metrics list", kops("client-metrics", "list", name, "-o", "json").ok()) == [row]
    deleted = kops("client-metrics", "delete", name, "--yes", "-o", "json").ok().json
    assert name not in apache.run("--list", APACHE)
    kops("undo", deleted["journal_id"], "--yes").ok()
    assert kops("client-metrics", "list", name, "-o", "json").ok().json == [row]
    kops("client-metrics", "delete", name, "--yes").ok()


@pytest.mark.parametrize(
    "words", [("set", "x"), ("set", "x", "--match", "name=y"), ("set", "x", "--match", "client_id=("), ("set", "x", "--interval", "soon")]
)
def test_bad_subscriptions_are_usage_errors(kops, words):
    assert kops("client-metrics", *words).code == 2
