"""Plan files and journal entries as kops writes them, written on a real cluster: read with typed arguments, and shown as they were.

``tests/replay/test_earlier.py`` carries them out, resumes and undoes them.
"""

import pytest

from kops.core.errors import UsageProblem
from kops.core.plan import plan_from_json, plan_of_document
from kops.operations.protocol.registry import typed
from kops.operations.replay.arguments import RedriveArguments, ReplayArguments, RestoreArguments
from support.earlier_plans import journaled, read_earlier

EARLIER = read_earlier(__file__)
ENTRIES = [name for name in EARLIER if name.endswith(".entry")]
TYPES = {"replay.run": ReplayArguments, "replay.restore": RestoreArguments, "replay.redrive": RedriveArguments}


@pytest.mark.parametrize("name", EARLIER)
def test_arguments_are_read_and_written_as_before(name):
    body = EARLIER[name]
    plan = plan_from_json(body["plan"]) if name in ENTRIES else plan_of_document(body)
    read = typed(plan)
    if plan.operation in TYPES:
        assert type(read.arguments) is TYPES[plan.operation]
    assert read.as_json() == plan.as_json()


@pytest.mark.parametrize("name", ENTRIES)
def test_entry_is_shown_as_before(name, run_kops):
    entry = EARLIER[name]
    shown = run_kops("journal", "show", journaled(entry), "-o", "json").ok().json
    assert shown["plan"] == entry["plan"]
    row = run_kops("journal", "list", "-o", "json").ok().json[0]
    assert row["operation"] == entry["plan"]["operation"]


@pytest.mark.parametrize("missing", ["ranges", "changes", "ends"])
def test_damaged_arguments_are_refused(missing):
    body = EARLIER["run.entry"]["plan"]
    without = {name: value for name, value in body["arguments"].items() if name != missing}
    with pytest.raises(UsageProblem, match="damaged"):
        typed(plan_from_json(body | {"arguments": without}))
