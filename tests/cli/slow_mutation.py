"""kops with one more kind of mutation: slow, so that it can be stopped in the middle.

Each item is a file that appears in a folder; after the second item it makes a file named ``waiting``, and waits until one named ``go`` is
there.
Run it like kops: ``python slow_mutation.py apply PLAN --yes``.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from kops.core.errors import StateMoved, VerificationFailed
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.operations.protocol.mutation import Mutation, failed
from kops.operations.protocol.registry import MUTATIONS

WAITS_AFTER = 2


class Slow(Mutation):
    name = "test.slow"

    def check(self, services, plan):
        if (folder_of(plan) / "moved").exists():
            raise StateMoved("the folder moved")

    def apply(self, services, plan):
        for number, item in enumerate(plan.changes):
            path = folder_of(plan) / item.target
            services.progress.step(f"item {item.target}")
            path.touch() if item.action == "create" else path.unlink()
            yield ItemResult(item.target, Status.DONE)
            if number + 1 == WAITS_AFTER:
                (folder_of(plan) / "waiting").touch()  # by now the result of the second item is taken
            while number + 1 == WAITS_AFTER and not (folder_of(plan) / "go").exists():
                time.sleep(0.01)

    def verify(self, services, plan, results):
        there = {path.name for path in folder_of(plan).iterdir()}
        wrong = VerificationFailed("not as planned")
        return tuple(
            result if (item.target in there) == (item.action == "create") else failed(item, wrong)
            for item, result in zip(plan.changes, results, strict=True)
        )

    def invert(self, services, plan, results):
        there = [item for item in plan.changes if (folder_of(plan) / item.target).exists() == (item.action == "create")]
        turned = {"create": "delete", "delete": "create"}
        return replace(plan, summary="undo", items=tuple(replace(item, action=turned[item.action]) for item in there))

    def resume(self, services, plan):
        left = [item for item in plan.changes if (folder_of(plan) / item.target).exists() != (item.action == "create")]
        return replace(plan, summary="finish", items=tuple(left))


SLOW = Slow()


def folder_of(plan):
    return Path(plan.arguments["folder"])


def slow_plan(cluster_id, folder, items=("a", "b", "c", "d")):
    return Plan(
        Slow.name,
        f"make {len(items)} files",
        cluster_id,
        "test",
        tuple(Item(name, "create") for name in items),
        arguments={"folder": str(folder)},
    )


if __name__ == "__main__":
    from kops.cli.frame.main import main

    MUTATIONS[Slow.name] = "slow_mutation:SLOW"
    sys.exit(main())
