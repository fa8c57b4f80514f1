"""``kops records produce``, loaded when it runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import BinaryIO

from kops.cli.frame.carry_out import approve_if_protected
from kops.cli.frame.session import Session
from kops.core.errors import ExitCode, UsageProblem
from kops.core.findings import counted
from kops.core.models import NewRecord
from kops.core.plan import Plan, Result
from kops.core.stops import STOPS, exit_code
from kops.core.times import parse_time
from kops.core.visible import indented
from kops.formats.base import Format
from kops.operations.protocol.journal import Entry
from kops.operations.protocol.mutation import refuse_read_only
from kops.operations.protocol.run import carry_out
from kops.operations.records import input as records_input
from kops.operations.records.formats import format_for
from kops.operations.records.input import Named, RecordOverrides
from kops.operations.records.produce import ProduceRecords, ProduceRequest, count, plan_produce

COLUMNS = ("partition", "records", "first_offset", "last_offset")
_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\0": "\0"}


def produce(
    session: Session,
    topic: str,
    *,
    files: Sequence[str],
    kind: str,
    key: str | None,
    value: str | None,
    tombstone: bool,
    key_separator: str | None,
    null: str | None,
    headers: Sequence[str],
    timestamp: str | None,
    partition: int | None,
    repartition: bool,
    partitioner: str,
    acks: str,
    key_format: str | None,
    value_format: str | None,
    key_schema: str | None,
    value_schema: str | None,
    dry_run: bool,
    confirm: str | None,
) -> int:
    single = value is not None or tombstone
    if value is not None and tombstone:
        raise UsageProblem("--value and --tombstone are mutually exclusive", hint="a tombstone is a record without a value")
    if single and (files or key_separator is not None or null is not None or kind != "lines"):
        raise UsageProblem("--value and --tombstone are the whole input", hint="leave --file, --input, --key-separator and --null out")
    if key_separator is not None and (key is not None or kind != "lines" or not key_separator):
        raise UsageProblem("--key-separator is for lines that begin with their key", hint="leave --key out, and --input lines")
    schemas = {"key": key_schema or f"{topic}-key", "value": value_schema or f"{topic}-value"}

    @cache
    def named(part: str, name: str) -> Format:
        return format_for(session, name, schemas[part])

    key_form = named("key", key_format) if key_format else None
    value_form = named("value", value_format) if value_format else None
    given = RecordOverrides(
        key=_typed(key, key_form),
        has_key=key is not None,
        headers=tuple(map(_header, headers)),
        timestamp=parse_time(timestamp, session.now()) if timestamp is not None else None,
        partition=partition,
        keep_partition=not repartition,
        key_separator=_ESCAPES.get(key_separator, key_separator).encode() if key_separator is not None else None,
        null=null.encode() if null is not None else None,
        key_format=key_form,
        value_format=value_form,
    )
    with ExitStack() as stack:
        if single:
            record = NewRecord(given.key, _typed(value, value_form), given.timestamp, partition, given.headers)
            outgoing = ProduceRequest([("the record", record)], "the command line", partitioner, acks)
        else:
            inputs = [(name, _opened(stack, name)) for name in files or ["-"]]
            source = ", ".join("stdin" if name == "-" else name for name, _ in inputs)
            outgoing = ProduceRequest(_entries(inputs, kind, given, named), source, partitioner, acks)
        return _send(session, topic, outgoing, dry_run=dry_run, confirm=confirm, typing=not single and not files and sys.stdin.isatty())


def _send(session: Session, topic: str, outgoing: ProduceRequest, *, dry_run: bool, confirm: str | None, typing: bool) -> int:
    if dry_run:
        session.render(count(session, topic, outgoing), ["topic", "partition", "records", "tombstones"])
        session.note("dry run: nothing was produced")
        return int(ExitCode.DONE)
    refuse_read_only(session.connection)
    plan = plan_produce(session, topic, outgoing)
    outgoing.progress = session.progress

    def agreed(shown: Plan) -> None:
        approve_if_protected(session, shown, confirm)
        if typing:
            session.note("one record a line; Ctrl-D ends")

    result, entry = carry_out(session, plan, ProduceRecords(outgoing), approve=agreed, journal=session.journal)
    _finish(session, topic, result, entry)
    if isinstance(outgoing.stopped, STOPS):
        return int(exit_code(outgoing.stopped))
    return int(result.exit_code)


def _finish(session: Session, topic: str, result: Result, entry: Entry) -> None:
    """Write what each partition took to stdout, and what went wrong to stderr."""
    body = result.as_json() | {"journal_id": entry.id}
    taken = [item for item in result.items if item.value]
    if session.output_format in ("json", "yaml"):
        session.render_object(json.loads(json.dumps(body)))
    elif taken:
        rows = [{**item.value, "partition": item.target} for item in taken]
        session.render(rows, COLUMNS, whole=True)
    total = sum(item.value["records"] for item in taken)
    for item in result.items:
        if item.error:
            sys.stderr.write(f"kops: error: {indented(item.error['message'])}\n")
            if item.error.get("hint"):
                sys.stderr.write(f"hint: {indented(item.error['hint'])}\n")
    refused = sum(item.error.get("refused", 0) for item in result.items if item.error)
    session.note(
        f"{topic}: {counted(total, 'record')} acknowledged{f', {refused:,} refused' if refused else ''}; "
        f"journal {entry.id}; this cannot be undone"
    )
    session.note(*result.messages)


def _entries(inputs: Sequence[tuple[str, BinaryIO]], kind: str, given: RecordOverrides, named: Named) -> Iterator[records_input.Entry]:
    for name, file in inputs:
        if kind == "json":
            yield from records_input.from_json(name, file, given, named)
        else:
            yield from (records_input.from_whole if kind == "whole" else records_input.from_lines)(name, file, given)


def _opened(stack: ExitStack, name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return stack.enter_context(Path(name).open("rb"))
    except OSError as error:
        raise UsageProblem(f"cannot read {name}: {error.strerror}", hint="--file - is stdin") from error


def _typed(text: str | None, form: Format | None) -> bytes | None:
    if text is None:
        return None
    return text.encode("utf-8", "surrogateescape") if form is None else form.encode(form.parse(text))


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageProblem(f"--header {text} has no value", hint="write it as --header trace-id=abc")
    return name, value.encode("utf-8", "surrogateescape")
