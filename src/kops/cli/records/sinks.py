"""Where consumed records go: stdout, as rows, by a %-format, or their bytes alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from kops.cli.frame.session import Session
from kops.core.errors import UndecodableRecord, UsageProblem
from kops.core.findings import counted
from kops.core.records.filters import text_of
from kops.core.records.line_format import SHOWN_KEY, SHOWN_VALUE, RecordFormat, compile_format
from kops.core.records.models import Record
from kops.formats.base import Format
from kops.operations.records.consume import Stream
from kops.operations.records.lines import line_maker
from kops.operations.records.rows import Subject, stream_row
from kops.output.guard import unguarded
from kops.output.lines import LineWriter, write_bytes, write_json_lines
from kops.output.records import as_cells, raw_lines, stream_columns


@dataclass(frozen=True)
class DisplayOptions:
    """How records are shown.

    :param skip: pass over records that cannot be decoded
    """

    key: Format
    value: Format
    skip: bool
    raw: bool
    template: str | None


@dataclass(frozen=True)
class Sink:
    """Writes batches, and what belongs after the last.

    :param form: writes them by a %-format, key and value as they are: nothing but its parts is needed of a record
    """

    write: Callable[[list[Record]], None]
    finish: Callable[[], None] = lambda: None
    form: RecordFormat | None = None


def sink_for(session: Session, shown: DisplayOptions, stream: Stream) -> Sink:
    """Return the sink that writes records in the chosen form.

    :raises UsageProblem: when that is given twice
    """
    if shown.raw and shown.template is not None:
        raise UsageProblem("--raw and --format are mutually exclusive", hint=r"--format '%s\n' is what --raw writes")
    if (shown.raw or shown.template is not None) and session.written_format != "table":
        raise UsageProblem(f"-o {session.written_format} cannot be combined with --raw or --format", hint="choose one of them")
    if shown.raw:
        return Sink(lambda batch: write_values([record.value for record in batch]))
    return _format_sink(shown.template, shown, stream) if shown.template is not None else _row_sink(session, shown, stream)


def write_values(values: list[bytes | None]) -> None:
    if values:
        write_bytes(raw_lines(values))


def _format_sink(template: str, shown: DisplayOptions, stream: Stream) -> Sink:
    form = compile_format(template)

    def text(record: Record, part: str, data: bytes | None, chosen: Format) -> bytes | None:
        if data is None or chosen.name == "bytes":
            return data
        return text_of(Subject(record, shown.key, shown.value).part(part)).encode("utf-8", "surrogatepass")

    parts: dict[str, Callable[[Record], Any]] = {
        SHOWN_KEY: lambda record: text(record, "key", record.key, shown.key),
        SHOWN_VALUE: lambda record: text(record, "value", record.value, shown.value),
    }
    chosen = [parts.get(part) or attrgetter(part) for part in form.parts]

    def row(record: Record) -> list[Any]:
        return [part(record) for part in chosen]

    def write(batch: list[Record]) -> None:
        write_bytes(form.write(decoded(batch, row, shown, stream)))

    return Sink(write, form=form if shown.key.name == shown.value.name == "bytes" else None)


def _row_sink(session: Session, shown: DisplayOptions, stream: Stream) -> Sink:
    if session.output_format == "json":
        line = line_maker(shown.key, shown.value)
        return Sink(lambda batch: write_json_lines(decoded(batch, line, shown, stream), sys.stdout))
    table = session.output_format == "table"
    terminal = table and sys.stdout.isatty()
    lines = LineWriter(lambda rows: stream_columns(rows, session.output_format), session.written_format, sys.stdout, terminal=terminal)

    def row(record: Record) -> dict[str, Any]:
        found = stream_row(record, shown.key, shown.value)
        return as_cells(found) if table else found

    return Sink(lambda batch: lines.write(decoded(batch, row, shown, stream)), lines.finish)


def decoded(batch: list[Record], make: Callable[[Record], Any], shown: DisplayOptions, stream: Stream) -> list[Any]:
    """Return the records converted; one that cannot be decoded is skipped, or ends them after those before."""
    made: list[Any] = []
    for record in batch:
        try:
            made.append(make(record))
        except UndecodableRecord as wrong:
            if not shown.skip:
                stream.given -= len(batch) - len(made)
                stream.broken = wrong
                break
            stream.given -= 1
            stream.skip(wrong)
    return made


def report(session: Session, stream: Stream, *, interrupted: bool = False) -> None:
    """Say on stderr what was read and what to know about it."""
    of = f" of {stream.read:,} read" if stream.read != stream.given else ""
    if sys.stderr.isatty() and not session.quiet:
        unguarded(sys.stderr).write("\r\x1b[K")
    session.note(f"{stream.topic}: {counted(stream.given, 'record')}{of}{', interrupted' if interrupted else ''}")
    for sentence in stream.notes:
        session.note(f"note: {sentence}")
    count, first = stream.undecodable
    if count:
        session.note(f"warning: undecodable and left out: {count:,}; the first: {first}")
