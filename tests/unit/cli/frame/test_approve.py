"""Approval: who has to say what, on a terminal and without one."""

import io
from dataclasses import replace

import pytest

from kops.cli.frame.approve import approve, names_to_type, refuse_other_names
from kops.cli.frame.options import Approval
from kops.config.connection import Connection
from kops.core.errors import ApprovalRequired
from kops.core.plan import Severity


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def severe(plan):
    return replace(plan, severity=Severity.SEVERE, confirm="two words")


OPEN = Connection(("b:1",), name="dev")
PROTECTED = Connection(("b:1",), name="prod", protected=True)


@pytest.fixture
def ask(monkeypatch):
    """Approve with an answer typed on a terminal (None: no terminal); return what was shown and asked."""

    def ask(plan, approval, connection=OPEN, answer=None):
        stdin, stderr = (io.StringIO(), io.StringIO()) if answer is None else (Terminal(answer), Terminal())
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stderr", stderr)
        shown = []
        try:
            approve(plan, approval, connection, lambda plan, asking: shown.append(asking))
        finally:
            assert shown == [bool(stderr.getvalue())]
        return stderr.getvalue()

    return ask


def test_what_has_to_be_typed(plan, severe):
    assert names_to_type(plan, OPEN) == []
    assert names_to_type(plan, PROTECTED) == ["prod"]
    assert names_to_type(severe, OPEN) == ["two words"]
    assert names_to_type(severe, PROTECTED) == ["two words", "prod"]


def test_yes_is_enough_for_a_moderate_plan(plan, ask):
    assert ask(plan, Approval(yes=True)) == ""


@pytest.mark.parametrize("answer", ["y\n", "Y\n", "yes\n", " y \n"])
def test_yes_on_a_terminal(plan, ask, answer):
    assert "Do it? [y/N]" in ask(plan, Approval(), answer=answer)


@pytest.mark.parametrize("answer", ["n\n", "\n", "", "yess\n", "two words\n"])
def test_anything_else_is_a_no(plan, ask, answer):
    with pytest.raises(ApprovalRequired, match="not approved"):
        ask(plan, Approval(), answer=answer)


def test_a_severe_plan_needs_its_name(severe, ask):
    assert ask(severe, Approval(confirm=("two words",))) == ""
    assert "Type two words to continue" in ask(severe, Approval(), answer="two words\n")
    assert "Type two words to continue" in ask(severe, Approval(yes=True), answer="two words\n")
    for answer in ("y\n", "two\n", ""):
        with pytest.raises(ApprovalRequired):
            ask(severe, Approval(yes=True), answer=answer)


def test_a_wrong_name_is_no_reason_to_ask(severe, ask):
    with pytest.raises(ApprovalRequired, match="--confirm other") as raised:
        ask(severe, Approval(yes=True, confirm=("other",)), answer=None)
    assert "--confirm 'two words'" in raised.value.hint
    assert raised.value.details == {"confirm": ["two words"]}


def test_a_name_that_no_plan_can_ask_for_is_refused_before_one_is_computed():
    names = ["a-counts-changelog", "a"]
    for given in ((), ("a",), ("a-counts-changelog", "")):
        refuse_other_names(Approval(confirm=given), names, OPEN)
    for connection in (OPEN, PROTECTED):  # once the plan's own name is there, another one is not a reason to refuse: see approve
        refuse_other_names(Approval(confirm=("a", "prod")), names, connection)
    refuse_other_names(Approval(confirm=("prod",)), names, PROTECTED)
    for given, connection in ((("counts",), OPEN), (("prod",), OPEN), (("prod", "counts"), PROTECTED)):
        with pytest.raises(ApprovalRequired, match=f"--confirm {given[-1]} does not match") as raised:
            refuse_other_names(Approval(confirm=given), names, connection)
        assert "--confirm a-counts-changelog or --confirm a;" in raised.value.hint


def test_without_a_terminal_the_flag_is_named(plan, severe, ask):
    for shown, flag in ((plan, "--yes"), (severe, "--confirm 'two words'")):
        with pytest.raises(ApprovalRequired, match="no terminal") as raised:
            ask(shown, Approval())
        assert flag in raised.value.hint
    with pytest.raises(ApprovalRequired):
        ask(severe, Approval(yes=True))


def test_a_protected_context_needs_its_name_for_everything(plan, ask):
    with pytest.raises(ApprovalRequired) as raised:
        ask(plan, Approval(yes=True), PROTECTED)
    assert "--confirm prod" in raised.value.hint
    assert ask(plan, Approval(confirm=("prod",)), PROTECTED) == ""
    assert "Type prod to continue" in ask(plan, Approval(yes=True), PROTECTED, answer="prod\n")


@pytest.mark.parametrize(
    ("given", "missing"),
    [((), ["two words", "prod"]), (("two words",), ["prod"]), (("prod",), ["two words"]), (("prod", "prod"), ["two words"])],
)
def test_a_severe_plan_in_a_protected_context_needs_both_names(severe, ask, given, missing):
    with pytest.raises(ApprovalRequired) as raised:
        ask(severe, Approval(yes=True, confirm=given), PROTECTED)
    assert raised.value.details == {"confirm": missing}
    assert all(f"--confirm {'prod' if name == 'prod' else repr(name)}" in raised.value.hint for name in missing)
    for both in (("prod", "two words"), ("two words", "prod")):
        assert ask(severe, Approval(confirm=both), PROTECTED) == ""


def test_both_names_are_typed_on_a_terminal(severe, ask):
    asked = ask(severe, Approval(yes=True), PROTECTED, answer="two words\nprod\n")
    assert asked == "Type two words to continue: Type prod to continue: "
    assert ask(severe, Approval(confirm=("two words",)), PROTECTED, answer="prod\n") == "Type prod to continue: "
    for answer in ("two words\n\n", "two words\ntwo words\n", "prod\n", "prod\ntwo words\n"):
        with pytest.raises(ApprovalRequired, match="not approved"):
            ask(severe, Approval(), PROTECTED, answer=answer)


def test_a_topic_that_is_named_like_its_context_is_named_twice(severe, ask):
    named = replace(severe, confirm="prod")
    with pytest.raises(ApprovalRequired):
        ask(named, Approval(confirm=("prod",)), PROTECTED)
    assert ask(named, Approval(confirm=("prod", "prod")), PROTECTED) == ""


def test_a_name_that_would_act_on_the_terminal_is_asked_and_typed_visibly(severe, ask):
    hostile = replace(severe, confirm="a\x1b[2Kb\u202e")
    asked = ask(hostile, Approval(), answer="a\\x1b[2Kb\\u202e\n")
    assert asked == "Type a\\x1b[2Kb\\u202e to continue: "
    assert ask(hostile, Approval(confirm=("a\\x1b[2Kb\\u202e",))) == ""
