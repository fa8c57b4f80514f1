"""A shadow as a change: whatever ends it, it is removed, and what cannot be is reported and left open in the journal."""

from types import SimpleNamespace

import pytest

from kops.core.errors import GroupActive, NotFound, OperationFailed, TimedOut, UsageProblem
from kops.core.plan import Status, plan_from_json
from kops.core.progress import NoProgress
from kops.operations.protocol.registry import mutation_named
from kops.operations.state import shadow_change
from kops.operations.state.shadow_change import SHADOW, ShadowArguments, plan_shadow, refuse_left

NAME = "prices-shadow-1a2b3c4d"


class Cluster:
    """Topics and groups by name, some of which cannot be deleted."""

    def __init__(self, topics=(), groups=(), busy=0, kept=()):
        self.there, self.group_ids, self.busy, self.kept = set(topics), set(groups), busy, set(kept)
        self.topics = SimpleNamespace(names=lambda: sorted(self.there), delete=self._delete)
        self.groups = SimpleNamespace(describe_or_errors=self._describe, delete=self._delete_groups)

    def cluster(self):
        return SimpleNamespace(cluster_id="cluster-1")

    def _delete(self, names):
        self.there -= set(names) - self.kept

    def _describe(self, names):
        return {name: SimpleNamespace(members=()) if name in self.group_ids else NotFound(name) for name in names}

    def _delete_groups(self, names):
        if self.busy:
            self.busy -= 1
            return {name: GroupActive(name) for name in names}
        self.group_ids -= set(names)
        return dict.fromkeys(names)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a shadow that is there: services, and its plan with some work."""
    monkeypatch.setattr(shadow_change, "_LOOK_SECONDS", 0)

    def make(work=lambda: None, **more):
        folder = tmp_path / NAME
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state").touch()
        cluster = Cluster({f"{NAME}-a-changelog", f"{NAME}x-b-changelog", "prices-a-changelog"}, {NAME, "prices"}, **more)
        connection = SimpleNamespace(label="local")
        services = SimpleNamespace(kafka=cluster, connection=connection, progress=NoProgress())
        arguments = ShadowArguments("prices", NAME, "java App", str(folder), (f"{NAME}-a-changelog",), work)
        return services, plan_shadow(services, arguments, summary="run it", notes=())

    return make


def applied(services, plan):
    results = []
    try:
        results.extend(SHADOW.apply(services, plan))
    except Exception as error:
        return results, error
    return results, None


def gone(services, folder):
    here = services.kafka
    return here.there == {f"{NAME}x-b-changelog", "prices-a-changelog"} and here.group_ids == {"prices"} and not folder.exists()


@pytest.mark.parametrize("busy", [0, 3])
def test_it_is_gone_after_it_has_run(made, tmp_path, busy):
    worked = []
    services, plan = made(lambda: worked.append(1), busy=busy)
    results, error = applied(services, plan)
    assert (worked, error) == ([1], None)
    assert [result.status for result in SHADOW.verify(services, plan, results)] == [Status.DONE]
    assert gone(services, tmp_path / NAME)


@pytest.mark.parametrize("error", [OperationFailed("it threw"), UsageProblem("no such command"), KeyboardInterrupt()])
def test_it_is_gone_after_an_error(made, tmp_path, error):
    def work():
        raise error

    services, plan = made(work)
    with pytest.raises(type(error)) as raised:
        list(SHADOW.apply(services, plan))
    assert raised.value is error
    assert gone(services, tmp_path / NAME)


def test_what_cannot_be_taken_away_is_named_and_left_open(made):
    def work():
        raise TimedOut("too long")

    services, plan = made(work, kept=[f"{NAME}-a-changelog"])
    results, error = applied(services, plan)
    assert [result.status for result in results] == [Status.DONE]  # so that the entry of the journal is partial
    assert f"left: 1 topic ({NAME}-a-changelog)" in error.hint
    services, plan = made(kept=[f"{NAME}-a-changelog"])
    seen = SHADOW.verify(services, plan, applied(services, plan)[0])
    with pytest.raises(OperationFailed, match="there is still 1 topic") as raised:
        refuse_left(seen)
    assert "kops journal finish" in raised.value.hint


def test_what_is_left_is_planned_from_a_plan_that_was_read(made, tmp_path):
    services, plan = made()
    read = mutation_named("state.shadow").typed(plan_from_json(plan.as_json()))
    assert read.arguments == plan.arguments
    away = SHADOW.resume(services, read)
    assert away.has_changes
    assert away.items[0].before == f"1 topic ({NAME}-a-changelog), the group {NAME}, the folder {tmp_path / NAME}"
    assert applied(services, away)[1] is None
    assert gone(services, tmp_path / NAME)
    assert not SHADOW.resume(services, read).has_changes


def test_it_asks_for_a_word_of_its_own(made):
    _, plan = made()
    assert (plan.severity.value, plan.confirm) == ("severe", "prices-shadow")
    assert "the program really runs" in plan.warnings[0]
    assert not SHADOW.can_be_undone(plan)
