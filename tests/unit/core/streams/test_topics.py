"""Whose internal topics are whose."""

import pytest

from kops.core.streams.topics import doubts, is_named_of, owner_of, store_of


@pytest.mark.parametrize(
    ("topic", "application", "expected"),
    [
        ("orders-counts-changelog", "orders", True),
        ("orders-counts-changelog", "order", False),
        ("orders-changelog", "orders", False),  # a topic of the person's own
        ("orders-counts-repartition", "orders", True),
        ("orders-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic", "orders", True),
        ("orders-fk-subscription-response-topic", "orders", True),
        ("orders-topic", "orders", False),
        ("orders-v2-counts-changelog", "orders-v2", True),
        ("orders-counts-changelog", "", False),
    ],
)
def test_is_named_of(topic, application, expected):
    assert is_named_of(topic, application) is expected


def test_the_longest_application_owns_a_topic():
    ids = ["orders", "orders-v2", "order"]
    assert owner_of("orders-v2-counts-changelog", ids) == "orders-v2"
    assert owner_of("orders-counts-changelog", ids) == "orders"
    assert owner_of("payments-counts-changelog", ids) is None
    assert owner_of("orders-counts", ids) is None


def test_the_store_of_a_changelog():
    assert store_of("orders-v2-counts-changelog", "orders-v2") == "counts"
    assert store_of("orders-counts-repartition", "orders") is None


def test_neighbours_whose_group_is_gone_are_doubted():
    own = [
        "orders-counts-changelog",
        "orders-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog",
        "orders-users-STATE-STORE-0000000000-changelog",
    ]
    assert doubts("orders", own) == ()
    twin, generated = "orders-v2-counts-changelog", "orders-v2-KSTREAM-REDUCE-STATE-STORE-0000000003-repartition"
    found = {doubt.topic: doubt.other for doubt in doubts("orders", [*own, twin, generated])}
    assert found == {twin: "orders-v2", generated: "orders-v2"}
