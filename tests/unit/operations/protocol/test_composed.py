"""Several plans as one: what a part that fails leaves, what is undone and finished, and what a file keeps of it."""

import pytest

from kops.core.errors import Refused, StateMoved
from kops.core.plan import Item, ItemResult, Plan, Severity, Status, plan_from_json
from kops.operations.protocol import registry
from kops.operations.protocol.composed import COMPOSED, Part, compose
from kops.operations.protocol.mutation import Mutation


class Toy(Mutation):
    """Applies its items, but for those that end in ``!``."""

    name = "test.toy"

    def __init__(self):
        self.log, self.moved, self.final = [], "", ""

    def locks(self, plan):
        return [f"toy {item.target}" for item in plan.items]

    def check(self, services, plan):
        if plan.summary == self.moved:
            raise StateMoved("moved")

    def apply(self, services, plan):
        for item in plan.changes:
            self.log.append(item.target)
            yield ItemResult(item.target, Status.FAILED if item.target.endswith("!") else Status.DONE)

    def verify(self, services, plan, results):
        return tuple(result._replace(value=plan.summary) for result in results)

    def invert(self, services, plan, results):
        if plan.summary == self.final:
            raise Refused("it is gone for good")
        return toy_plan(f"undo {plan.summary}", *(result.target for result in results if result.status is Status.DONE))

    def resume(self, services, plan):
        return toy_plan(plan.summary, *(item.target for item in plan.changes if item.target not in self.log))


def toy_plan(summary, *targets, severity=Severity.MODERATE):
    items = tuple(Item(target, "make") for target in targets)
    return Plan(Toy.name, summary, "cluster-1", "here", items, severity, arguments={"made": summary})


@pytest.fixture
def toy(monkeypatch):
    made = Toy()
    monkeypatch.setitem(registry.MUTATIONS, Toy.name, "unused:unused")
    monkeypatch.setattr("kops.operations.protocol.composed.mutation_named", lambda name: {Toy.name: made}[name])
    monkeypatch.setattr("kops.operations.protocol.composed.typed", lambda plan: plan)
    return made


@pytest.fixture
def there(services):
    return services("cluster-1")


def composed(there, *parts):
    return compose([Part(kind, plan) for kind, plan in parts], "apply folder", there)


def test_it_is_read_back_from_a_file_as_it_was(toy, there):
    plan = composed(there, ("topic", toy_plan("one", "a", "b")), ("user", toy_plan("none")), ("acl", toy_plan("two", "a")))
    assert [item.target for item in plan.items] == ["topic a", "topic b", "acl a"]
    assert plan.summary == "apply folder: 3 changes"
    read = COMPOSED.typed(plan_from_json(plan.as_json()))
    assert read == plan
    assert [part.kind for part in read.arguments.parts] == ["topic", "acl"]
    assert COMPOSED.locks(read) == ["toy a", "toy b"]


def test_a_severe_part_makes_all_of_it_severe(toy, there):
    plan = composed(there, ("topic", toy_plan("one", "a")), ("topic", toy_plan("two", "b", severity=Severity.SEVERE)))
    assert (plan.severity, plan.confirm) == (Severity.SEVERE, plan.context)


def test_what_comes_after_a_part_that_failed_is_left_alone_and_finished_later(toy, there):
    plan = composed(there, ("topic", toy_plan("one", "a", "b!", "c")), ("acl", toy_plan("two", "d")))
    results = list(COMPOSED.apply(there, plan))
    assert [(one.target, one.status.value) for one in results] == [
        ("topic a", "done"),
        ("topic b!", "failed"),
        ("topic c", "done"),
        ("acl d", "skipped"),
    ]
    assert results[-1].error["message"] == "left alone, since topic b! failed"
    assert [(one.target, one.value) for one in COMPOSED.verify(there, plan, results)][:2] == [("topic a", "one"), ("topic b!", "one")]
    assert [item.target for item in COMPOSED.resume(there, plan).changes] == ["acl d"]


def test_what_one_part_was_computed_from_has_changed_so_none_is_begun(toy, there):
    toy.moved = "two"
    with pytest.raises(StateMoved):
        COMPOSED.check(there, composed(there, ("topic", toy_plan("one", "a")), ("acl", toy_plan("two", "d"))))
    assert toy.log == []


def test_it_is_undone_from_the_end_and_says_what_is_not(toy, there):
    plan = composed(there, ("topic", toy_plan("one", "a")), ("user", toy_plan("two", "b")), ("acl", toy_plan("three", "c")))
    results = [ItemResult(item.target, Status.DONE) for item in plan.changes]
    toy.final = "two"
    undo = COMPOSED.invert(there, plan, results)
    assert [item.target for item in undo.changes] == ["acl c", "topic a"]
    assert undo.warnings == ("not undone: user: it is gone for good",)
    alone = composed(there, ("user", toy_plan("two", "b")))
    with pytest.raises(Refused, match="user: it is gone for good"):
        COMPOSED.invert(there, alone, [ItemResult("user b", Status.DONE)])
