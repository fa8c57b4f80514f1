"""A plan on the command line: shown, saved, approved, carried out, and its result rendered."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kops.cli.frame.approve import approve
from kops.cli.frame.options import Approval
from kops.cli.frame.plan_view import COLUMNS as PLAN_COLUMNS
from kops.cli.frame.plan_view import MOST_ITEMS, MOVING, plan_text, table_rows
from kops.core.errors import UsageProblem
from kops.core.plan import ItemResult, Plan, Result, Status, plan_document
from kops.core.stops import STOPS, kept_stops
from kops.core.suggestions import completed
from kops.core.visible import indented, visible
from kops.operations.protocol.mutation import FINAL, refuse_read_only, with_finality
from kops.operations.protocol.registry import MUTATIONS, mutation_named
from kops.operations.protocol.run import carry_out as run_protocol
from kops.operations.protocol.run import mark_earlier
from kops.operations.services import Services
from kops.output.colour import wrapped
from kops.output.json_text import write_json
from kops.output.table import cell
from kops.output.yaml_text import write_yaml

if TYPE_CHECKING:
    from kops.core.blocks import Row
    from kops.operations.protocol.journal import Entry, Journal
    from kops.output.table import Column

RESULT_COLUMNS = ("target", "status", "value", "error")
SHOWN_ITEMS = 40
WITHOUT_IDS = "these brokers give topics no ids: kops cannot see whether a topic is deleted and created again before or after this change"


class Presenter(Services, Protocol):
    """What shows a plan and its result to the person or program that runs kops; ``kops.cli.frame.session.Session`` is one."""

    @property
    def journal(self) -> Journal: ...

    @property
    def output_format(self) -> str: ...

    @property
    def markup(self) -> str | None: ...

    @property
    def quiet(self) -> bool: ...

    @property
    def cluster_words(self) -> list[str]: ...

    def note(self, *texts: str) -> None: ...

    def render(self, rows: Iterable[Row], columns: Sequence[str | Column], *, whole: bool = False) -> None: ...


def carry_out(session: Presenter, plan: Plan, approval: Approval, *, undoes: str = "", finishes: str = "") -> int:
    """Show, save, approve and run a plan; return the exit code."""
    plan = _with_blind_spot(session, plan)
    if plan.operation in MUTATIONS:
        plan = with_finality(plan, mutation_named(plan.operation))
    if approval.plan_out:
        save_plan(plan, Path(approval.plan_out))
        session.note(f"the plan is saved; `kops apply {approval.plan_out}` carries it out")
        return 0
    if approval.dry_run:
        show_plan_as_data(session, plan)
        return 0
    if not plan.has_changes:
        session.note(*remarks(plan))
        session.note(f"nothing to do: {visible(plan.summary)}")
        finish(session, Result(tuple(ItemResult(item.target, Status.UNCHANGED) for item in plan.items)), None)
        mark_earlier(session, session.journal, plan, mutation_named(plan.operation), undoes=undoes, finishes=finishes)
        return 0
    refuse_read_only(session.connection)
    result, entry = run_protocol(
        session,
        plan,
        mutation_named(plan.operation),
        approve=_asking_by(session, approval),
        journal=session.journal,
        undoes=undoes,
        finishes=finishes,
    )
    try:
        with kept_stops():
            finish(session, result, entry)
    except STOPS:
        said = f"interrupted while the result was shown; the plan was carried out: {result.status.value}"
        session.note(f"\n{said}; `kops journal show {entry.id}` shows all of it")
    return int(result.exit_code)


def _with_blind_spot(session: Presenter, plan: Plan) -> Plan:
    """Return the plan with a warning where its topics have no ids, by which kops knows a topic that was recreated."""
    kafka = session.__dict__.get("kafka")  # not made for a plan that asks no broker
    if kafka is None or not kafka.topics.any_without_id or WITHOUT_IDS in plan.warnings:
        return plan
    return replace(plan, warnings=(*plan.warnings, WITHOUT_IDS))


def save_plan(plan: Plan, path: Path) -> None:
    """Write a plan to a file of its own, readable by its owner only.

    :raises UsageProblem: when the file exists or cannot be written
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            write_json(plan_document(plan), file)
    except OSError as error:
        raise UsageProblem(f"cannot write the plan to {path}: {error.strerror}", hint="name a file that does not exist yet") from error


def remarks(plan: Plan) -> list[str]:
    """Return the plan's notes, warnings and losses."""
    warnings = [f"warning: {indented(one)}" for one in plan.warnings if one != FINAL]
    return [*map(indented, plan.notes), *warnings, *(f"lost by this: {indented(one)}" for one in plan.losses)]


def heading(plan: Plan) -> str:
    """Return the first lines of a plan: that it cannot be undone, where that is so, then what it does."""
    summary = visible(f"{plan.summary}  [{plan.context}]")
    return f"warning: {FINAL}\n{summary}" if FINAL in plan.warnings else summary


def show_plan(session: Presenter, plan: Plan, *, always: bool) -> None:
    """Show the plan to the person who approves it, on stderr.

    :param always: also when kops is to be quiet: a question follows
    """
    if session.quiet and not always:
        return
    lines = [heading(plan), plan_text(plan, SHOWN_ITEMS, terminal=sys.stderr.isatty())]
    texts = (*lines, *(completed(text, session.cluster_words) for text in remarks(plan)))
    sys.stderr.write("\n".join(wrapped(text, sys.stderr) for text in texts) + "\n")


def _asking_by(session: Presenter, approval: Approval) -> Callable[[Plan], None]:
    """Return a function that shows a plan and asks for the approval that the options have not given; it raises as ``approve`` does."""
    return lambda plan: approve(plan, approval, session.connection, lambda it, asking: show_plan(session, it, always=asking))


def approve_if_protected(session: Presenter, plan: Plan, confirm: str | None) -> None:
    """Ask about a plan that only a protected context asks about: the command itself says what it does.

    :param confirm: the context's name, where it is given
    :raises ApprovalRequired: as ``approve`` does
    """
    if session.connection.protected:
        _asking_by(session, Approval(confirm=(confirm,) if confirm else ()))(plan)


def show_plan_as_data(session: Presenter, plan: Plan) -> None:
    """Write the plan to stdout in the chosen format, for --dry-run."""
    if session.output_format == "json":
        write_json(plan_document(plan), sys.stdout)
    elif session.output_format == "yaml":
        write_yaml(json.loads(json.dumps(plan_document(plan))), sys.stdout)
    else:
        session.note(heading(plan))
        if session.markup:
            session.render(*table_rows(plan.items, delta=plan.operation in MOVING))
        elif session.output_format == "table":
            sys.stdout.write(wrapped(plan_text(plan, terminal=sys.stdout.isatty()), sys.stdout) + "\n")
        else:
            session.render([item.as_json() for item in plan.items], PLAN_COLUMNS)
        session.note(*remarks(plan))
        session.note("dry run: nothing was changed")


def finish(session: Presenter, result: Result, entry: Entry | None) -> None:
    """Write the result to stdout, and where it is journalled to stderr."""
    journal_id = {"journal_id": entry.id} if entry else {}
    if session.output_format == "json":
        write_json(result.as_json(in_blocks=True) | journal_id, sys.stdout)
    elif session.output_format == "yaml":
        write_yaml(json.loads(json.dumps(result.as_json() | journal_id)), sys.stdout)
    else:
        _finish_for_people(session, result)
    session.note(*result.messages)
    if entry:
        session.note(f"{result.status.value}; journal {entry.id}{_undo_hint(result, entry)}")


def _undo_hint(result: Result, entry: Entry) -> str:
    if result.status is Status.FAILED:
        return ""
    if not mutation_named(entry.plan.operation).can_be_undone(entry.plan):
        return "; this cannot be undone"
    return f"; to undo: `kops undo {entry.id}`"


def _finish_for_people(session: Presenter, result: Result) -> None:
    """Write the items; as a table of many, those that are not done, and how many are."""
    items: Sequence[ItemResult] = result.items
    if session.output_format == "table" and len(items) > MOST_ITEMS:
        counts = Counter(item.status.value for item in items)
        session.note(f"{', '.join(f'{count:,} {status}' for status, count in counts.items())}; -o json or csv lists each")
        items = [item for item in items if item.status not in (Status.DONE, Status.UNCHANGED)]
    rows = [{**item.as_json(), "value": cell(item.value), "error": (item.error or {}).get("message")} for item in items]
    if session.output_format != "table":
        session.render(rows, RESULT_COLUMNS)
    elif rows:
        used = {column for column in RESULT_COLUMNS for row in rows if row[column] not in (None, "-")}
        session.render(rows, [column for column in RESULT_COLUMNS if column in used], whole=True)
