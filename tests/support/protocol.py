"""A mutation of a dict, for tests of the safety protocol alone."""

from dataclasses import dataclass, field, replace

from kops.core.errors import StateMoved
from kops.core.plan import Item, ItemResult, Plan, Status, not_done
from kops.operations.protocol.mutation import Mutation


@dataclass
class World(Mutation):
    """Sets numbers by name; a name that was never set is 0."""

    name = "test.numbers"
    now: dict[str, int] = field(default_factory=dict)

    def plan(self, **wanted):
        items = [Item(name, "none" if self.at(name) == value else "set", self.at(name), value) for name, value in wanted.items()]
        return Plan(self.name, "set numbers", "cluster-1", "test", tuple(items))

    def at(self, name):
        return self.now.get(name, 0)

    def check(self, services, plan):
        if any(self.at(item.target) != item.before for item in plan.items):
            raise StateMoved("changed since the plan was made")

    def apply(self, services, plan):
        for item in plan.changes:
            self.now[item.target] = item.after
            yield ItemResult(item.target, Status.DONE)

    def verify(self, services, plan, results):
        return tuple(results)

    def invert(self, services, plan, results):
        ours = [item for item in plan.changes if item.target not in not_done(results)]
        strayed = [item.target for item in ours if self.at(item.target) not in (item.before, item.after)]
        back = self.plan(**{item.target: item.before for item in ours})
        return replace(back, losses=tuple(f"{name} is {self.at(name)}" for name in strayed))

    def resume(self, services, plan):
        if any(self.at(item.target) not in (item.before, item.after) for item in plan.changes):
            raise StateMoved("changed since")
        return self.plan(**{item.target: item.after for item in plan.changes})
