"""``verify --capture``: where a state file, and the changelogs of its stores, are not as the captured program says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.statefile import StateFile
from kops.core.statefile.against_program import file_differences, uncovered_stores
from kops.core.streams.capture import Capture, Store
from kops.core.streams.capture_differences import MISSING
from kops.operations.services import Services
from kops.operations.state.compare import Comparison
from kops.operations.state.compute import DIFFERENT
from kops.operations.streams.capture import capture_notes, cluster_differences

UNCOVERED = "uncovered"


@dataclass(frozen=True)
class Disagreement:
    """Where a state file or a topic disagrees with the program.

    :param store: None: it is of the application
    :param what: a field of the state file, ``missing``, ``partitions``, or a setting of the changelog
    :param changelog: what the topic has; None where the file differs
    """

    store: str | None
    what: str
    file: str | None
    program: str | None
    changelog: str | None = None


@dataclass(frozen=True)
class AgainstProgram:
    """A state file compared with a program.

    :param uncovered: stores of the program with a changelog that the file does not have
    """

    disagreements: Sequence[Disagreement]
    uncovered: Sequence[Store]
    notes: Sequence[str]


def against_program(services: Services, state_file: StateFile, capture: Capture, *, whole: bool) -> AgainstProgram:
    """Compare a state file, and the changelogs of its stores, with a program.

    :param whole: no stores were chosen: those that the file does not have are named
    :raises UsageProblem: when the capture is of another application
    """
    if capture.application != state_file.application:
        raise UsageProblem(f"the capture is of {capture.application}, and {state_file.path} of {state_file.application}")
    names = {store.changelog: store.name for store in state_file.stores}
    topics = [each for each in cluster_differences(services, capture) if each.topic in names]
    found = [Disagreement(each.store, each.what, each.file, each.program) for each in file_differences(state_file, capture)]
    found += [Disagreement(names[each.topic], each.setting or each.kind, None, each.program, each.cluster) for each in topics]
    return AgainstProgram(found, uncovered_stores(state_file, capture) if whole else (), capture_notes(capture))


def with_program(found: Comparison, against: AgainstProgram) -> Comparison:
    """Return a comparison with what differs from the program in each store's row, and a row for each store that the file does not have."""
    rows = [{**row, "program": [_row(each) for each in against.disagreements if each.store in (None, row["store"])]} for row in found.rows]
    none: dict[str, Any] = dict.fromkeys(rows[0], None) if rows else {}
    rows += [
        {**none, "store": store.name, "changelog": store.changelog, "status": UNCOVERED, "reasons": [], "program": []}
        for store in against.uncovered
    ]
    notes = [*found.notes, *against.notes]
    if against.uncovered:
        named = ", ".join(f"{store.name} ({store.kind or 'of another kind'})" for store in against.uncovered)
        notes.append(f"not compared, since the state file does not have them: {named}")
    if not against.disagreements:
        notes.append("the state file, and the changelogs of its stores, agree with the program, as far as the capture has it")
    return replace(found, rows=rows, notes=notes, status=DIFFERENT if against.disagreements else found.status)


def difference_rows(against: AgainstProgram) -> list[dict[str, Any]]:
    return [asdict(each) for each in against.disagreements]


def difference_text(found: Disagreement) -> str:
    """Return a difference as a sentence."""
    where = f"store {found.store}: " if found.store else ""
    if found.what == MISSING:
        return f"{where}its changelog is missing"
    if found.changelog is not None:
        return f"{where}{found.what} of its changelog is {found.changelog}, and {found.program or 'nothing'} in the program"
    return f"{where}{found.what} is {found.file or 'nothing'} in the state file, and {found.program or 'nothing'} in the program"


def _row(found: Disagreement) -> dict[str, Any]:
    return {name: value for name, value in asdict(found).items() if name != "store"}
