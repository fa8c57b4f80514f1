"""Contents of the report of a rebuild or of a comparison."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import kops
from kops.core.errors import UsageProblem
from kops.core.findings import counted
from kops.core.plan import ItemResult, Plan, Status
from kops.core.statefile import StateFile, Store
from kops.core.streams.verdict import WORDS as VERDICTS
from kops.core.times import time_text, to_milliseconds
from kops.operations.engine.spark import Engine, start_engine
from kops.operations.protocol.journal import Entry, Journal
from kops.operations.services import Services
from kops.operations.state.arguments import StateArguments, StoreWrite
from kops.operations.state.compute import ComputedStore
from kops.operations.state.stored_keys import WORDS, counts_by_word, key_rows
from kops.output.report import BAD, GOOD, NEUTRAL, WARNING, Report, Section, Table, report_html
from kops.output.report_chart import Chart

BARS = 60
SHOWN_KEYS = 50
KEY_COLUMNS = ("partition", "key", "status", "expected", "actual", "expected_timestamp", "actual_timestamp")


def refuse_report(path: str) -> None:
    """Refuse a path where no report can be written, before anything is computed.

    :raises UsageProblem: when something exists there, or the folder does not
    """
    target = Path(path)
    if target.exists():
        raise UsageProblem(f"{path} exists already", hint="name a file that does not exist yet")
    if not target.absolute().parent.is_dir():
        raise UsageProblem(f"there is no folder {target.absolute().parent}", hint="create it first")


def write_report(report: Report, path: str) -> None:
    """Write a report as HTML, readable only by its owner: it shows keys and values."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(report_html(report))
    except OSError as error:
        raise UsageProblem(f"cannot write the report to {path}: {error.strerror}", hint="name a file that does not exist yet") from error


def entry_of(journal: Journal, plan: Plan[StateArguments]) -> Entry | None:
    """Return the newest journal entry of a plan; None when it was not carried out."""
    readable = journal.entries(lambda _damaged: None)
    wanted = (plan.arguments.as_json(), plan.guard)
    return next((entry for entry in readable if (entry.plan.arguments, entry.plan.guard) == wanted), None)


def report_of_verify(services: Services, state_file: StateFile, engine: Engine, computed: Sequence[ComputedStore]) -> Report:
    """Return the report of a comparison: what the changelogs lack."""
    differing = sum(found.differing for found in computed)
    wrong = f"{counted(differing, 'key')} of the changelogs {'is' if differing == 1 else 'are'} wrong."
    verdict = wrong if differing else "No key that was compared differs."
    sections = [_compared(engine, found) for found in computed]
    return Report(
        title=f"The state of {state_file.application}",
        verdict=f"{verdict} Nothing was changed.",
        tone=BAD if differing else GOOD,
        facts=_facts(services, state_file),
        notes=(),
        sections=sections,
        footer=_footer(),
    )


def report_of_rebuild(services: Services, state_file: StateFile, plan: Plan[StateArguments], entry: Entry | None) -> Report:
    """Return the report of a rebuild: what was wrong, what was written, and what was read back.

    :param entry: of the journal; None when nothing was written
    """
    engine = start_engine(services, plan.arguments.master)
    results = {result.target: result for result in entry.item_results} if entry else {}
    by_name = {store.name: store for store in state_file.stores}
    sections = [_rebuilt(engine, by_name[name], store, plan, results) for name, store in plan.arguments.stores.items()]
    facts = [*_facts(services, state_file), ("what", plan.summary)]
    if entry:
        facts += [("journal", entry.id), ("carried out by", f"{entry.user}@{entry.host}"), ("from", entry.started), ("to", entry.ended)]
        facts += _next_command(entry)
    moves = [item.as_json() for item in plan.items if item.action in ("move", "commit")]
    if moves:
        table = Table("Moved to", ("target", "before", "after", "reason"), moves)
        sections.append(Section("Committed offsets", tables=(table,)))
    verdict, tone = _verdict(plan, results)
    notes = [*plan.notes, *(f"{WARNING}{warning}" for warning in plan.warnings)]
    return Report(f"Rebuild of {state_file.application}", verdict, tone, facts, notes, sections, _footer())


def _next_command(entry: Entry) -> list[tuple[str, str]]:
    from kops.operations.protocol.journal_actions import is_unfinished
    from kops.operations.protocol.registry import mutation_named

    if is_unfinished(entry):
        return [("to finish", f"kops journal finish {entry.id}")]
    mutation = mutation_named(entry.plan.operation)
    if mutation.can_be_undone(mutation.typed(entry.plan)):
        return [("to undo", f"kops undo {entry.id}")]
    return [("to undo", "this cannot be undone")]


def _verdict(plan: Plan[StateArguments], results: Mapping[str, ItemResult]) -> tuple[str, str]:
    if not plan.has_changes:
        return "Every key was correct; nothing was written.", GOOD
    if not results:
        return "Nothing was written: this is the plan.", NEUTRAL
    wrong = [result.target for result in results.values() if result.status not in (Status.DONE, Status.UNCHANGED)]
    if wrong:
        return f"Not everything was written, or read back as written: {', '.join(wrong)}", BAD
    stores = plan.arguments.stores.values()
    written = sum(store.records for store in stores)
    counts = counts_by_word(*(actions for store in stores for actions in store.facts.get("actions", {}).values()))
    found = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    keys = f" Keys that were wrong: {found}." if found else ""
    return f"{counted(written, 'record')} written, and verified by reading {'it' if written == 1 else 'them'} back.{keys}", GOOD


def _rebuilt(engine: Engine, store: Store, write: StoreWrite, plan: Plan[StateArguments], results: Mapping[str, ItemResult]) -> Section:
    topic, compared = write.changelog, "actions" in write.facts  # what replaces a topic is not compared by partition
    rows = []
    for item in plan.items:
        if not item.target.startswith(f"{topic}:"):
            continue
        number = item.target.rpartition(":")[2]
        content, actions = write.contents.get(int(number)), write.facts.get("actions", {}).get(number, {})
        result = results.get(item.target)
        rows.append(
            {
                "partition": int(number),
                **(counts_by_word(actions) if compared else {}),
                "written": content["records"] if content and result else 0,
                "tombstones": content["tombstones"] if content and result else 0,
                "read back": _read_back(content, result),
                "sum of hashes": f"{content['high']:x}.{content['low']:x}" if content and result else "-",
            }
        )
    columns = ("partition", *(WORDS.values() if compared else ()), "written", "tombstones", "read back", "sum of hashes")
    note = (
        "The number of records and the sum of their hashes (key, value, time) were compared with what was read from the topic "
        "afterwards, record by record where they differed."
    )
    return Section(
        title=f"Store {store.name}",
        facts=[("changelog", topic), *_facts_of(write.facts)],
        chart=_chart(engine, write.stage),
        tables=[Table("By partition", columns, rows, note if results else ""), *_keys(engine, store, write.stage)],
    )


def _facts_of(shown: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return what a plan reports about a store; a plan that recreates the changelog reports less."""
    facts = [(name, shown[key]) for name, key in (("records read", "read"), ("keys", "keys")) if key in shown]
    if "verdict" in shown:
        counts = [f"{shown[word]:,} {word}" for word in VERDICTS if shown[word]]
        facts.append(("verdict", f"{shown['verdict']}: {', '.join(counts)}"))
        facts += [("because", finding["summary"]) for finding in shown["findings"]]
    return facts


def _read_back(content: Mapping[str, int] | None, result: ItemResult | None) -> str:
    if result is None or content is None:
        return "-"
    return "equal" if result.status is Status.DONE else str((result.error or {}).get("message", result.status.value))


def _compared(engine: Engine, found: ComputedStore) -> Section:
    numbers = sorted({*found.actions, *found.facts.changelog_bounds})
    rows = [{"partition": number, **counts_by_word(found.actions.get(number, {}))} for number in numbers]
    return Section(
        title=f"Store {found.facts.store.name}",
        facts=[
            ("changelog", found.facts.store.changelog),
            ("records read", found.counts.read),
            ("keys", found.counts.keys),
            ("verdict", f"{found.word}: {found.verdict.text}"),
        ],
        notes=found.explained[1:],
        chart=_chart(engine, found.stage),
        tables=[
            Table("By partition", ("partition", *WORDS.values()), rows),
            *_keys(engine, found.facts.store, found.stage),
        ],
    )


def _chart(engine: Engine, stage: str) -> Chart | None:
    from kops.spark.staging.stage import times_of

    times = times_of(engine.session, stage, BARS)
    if times is None:
        return None
    bars = [{word: times.counts.get((number, name), 0) for name, word in WORDS.items()} for number in range(BARS)]
    return Chart("Keys that differed, by the time of their record", times.earliest, times.latest, list(WORDS.values()), bars)


def _keys(engine: Engine, store: Store, stage: str) -> list[Table]:
    rows = key_rows(engine, store, stage, SHOWN_KEYS)
    return [Table(f"The first {len(rows)} keys that differed", KEY_COLUMNS, rows)] if rows else []


def _facts(services: Services, state_file: StateFile) -> list[tuple[str, Any]]:
    return [
        ("source", state_file.path),
        ("cluster", f"{services.kafka.cluster().cluster_id} ({services.connection.label})"),
        ("time", time_text(to_milliseconds(services.now()))),
    ]


def _footer() -> str:
    return f"Made by kops {kops.__version__}. Times are in UTC."
