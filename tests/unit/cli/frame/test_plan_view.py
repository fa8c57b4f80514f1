"""A plan as the person sees it who approves it."""

from kops.cli.frame.plan_view import plan_text
from kops.core.plan import Item, Plan


def text(*items, limit=None):
    return plan_text(Plan("x", "x", "x", "x", items), limit)


def test_plain_values_are_a_table_without_empty_columns():
    assert text(Item("orders:0", "move", 5, 0), Item("orders:1", "move", None, 0)) == (
        "TARGET    ACTION  BEFORE  AFTER\norders:0  move         5      0\norders:1  move         -      0"
    )
    assert "REASON" in text(Item("orders:0", "move", 5, 0, "clamped"))


def test_what_has_parts_is_a_block_for_all_that_are_alike():
    after = {"partitions": 6, "settings": {"retention.ms": "604800000"}, "broker_defaults": {}}
    assert text(Item("a", "create", after=after), Item("b", "create", after=after), Item("c", "none", reason="exists already")) == (
        "create a, b\n"
        "  partitions      6\n"
        "  settings\n"
        "    retention.ms  604800000 (7d)\n"
        "TARGET  ACTION  REASON\n"
        "c       none    exists already"
    )


def test_a_change_shows_what_differs_only():
    before = {"partitions": 6, "settings": {"a": "1", "b": "2"}}
    after = {"partitions": 6, "settings": {"a": "1", "b": "3", "c": "4"}}
    assert text(Item("t", "alter", before, after)) == "alter t\n  settings\n    b       2 -> 3\n    c       - -> 4"


def test_what_goes_away_shows_what_it_was():
    assert text(Item("t", "delete", before={"records": 1234567})) == "delete t\n  records  1,234,567"


def test_a_long_plan_is_cut_and_says_so():
    shown = text(*(Item(f"t:{number}", "move", 0, number) for number in range(50)), limit=40)
    assert len(shown.splitlines()) == 42
    assert shown.endswith("... and 10 more; --dry-run shows all")


def test_names_of_a_block_are_wrapped_into_several():
    assert text(*(Item(f"t{number}", "delete", before={"x": 1}) for number in range(13))).count("delete ") == 2


def test_nothing_of_a_plan_is_cut_on_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    item = Item("prices-app-totals-changelog:0", "append", 99789, 100300, "256 added, 252 changed, 3 removed (doubtful)")
    shown = plan_text(Plan("x", "x", "x", "x", (item,)), terminal=True)
    assert shown == (
        "TARGET                         ACTION  BEFORE   AFTER  REASON\n"
        "prices-app-totals-changelog:0  append   99789  100300  256 added, 252 changed, 3\n"
        "                                                       removed (doubtful)"
    )
    assert max(map(len, shown.splitlines())) <= 80
