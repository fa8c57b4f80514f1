"""``kops records consume``, loaded when it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from kops.cli.frame.session import Session
from kops.cli.records.sinks import DisplayOptions, report, sink_for, write_values
from kops.core.errors import ExitCode, UsageProblem
from kops.core.records.filters import parse_filter
from kops.core.records.models import Record
from kops.core.records.ranges import parse_span
from kops.core.selection import parse_selection
from kops.core.stops import STOPS, exit_code, kept_stops
from kops.operations.records import consume as records
from kops.operations.records.consume import Stream
from kops.operations.records.formats import format_for, unnamed_formats
from kops.operations.records.rows import BYTES, JSON, with_groups_shown
from kops.output.lines import write_bytes

T = TypeVar("T")
GROUPS_TOPIC = "__consumer_offsets"


def consume(
    session: Session,
    topic: str,
    span: str | None,
    *,
    last: int | None,
    limit: int | None,
    filters: Sequence[str],
    follow: bool,
    latest: bool,
    tombstones: bool,
    key_name: str | None,
    value_name: str | None,
    raw: bool,
    template: str | None,
    group_id: str | None,
    on_error: str,
    isolation: str,
    confirm: str | None,
) -> int:
    conditions = [parse_filter(text) for text in filters]
    selection = parse_selection(topic)
    wanted = records.choose(
        selection,
        span=parse_span(span, session.now()) if span is not None else None,
        last=last,
        limit=limit,
        follow=follow,
        latest=latest,
        filtered=bool(conditions),
        isolation=isolation,
    )
    if tombstones and not latest:
        raise UsageProblem("--tombstones belongs to --latest", hint="elsewhere tombstones are shown always")
    of_groups = selection.topic == GROUPS_TOPIC and not (key_name or value_name or raw)
    key, value = (format_for(session, name) if name else JSON if of_groups else BYTES for name in (key_name, value_name))
    shown = DisplayOptions(key, value, on_error == "skip", raw, template)
    stream = Stream(selection.topic)
    sink = sink_for(session, shown, stream)
    if follow and session.markup:
        raise UsageProblem(f"--follow has no {session.markup}, which is written when the records end", hint="json, csv and table have")
    if not sys.stdout.isatty():
        stream.progress = session.progress

    samples: dict[str, bytes] = {}

    def finish() -> None:
        sink.finish()
        stream.notes.extend(unnamed_formats(session, samples))

    def choose(batches: Iterator[list[Record]]) -> Iterator[list[Record]]:
        batches = with_groups_shown(batches) if of_groups else _noticed(batches, {"key": key_name, "value": value_name}, samples)
        view = records.latest(batches, tombstones=tombstones, stream=stream) if latest else batches
        fitting = records.filtered(view, conditions, key, value, skip=shown.skip, stream=stream) if conditions else view
        return records.limited(fitting, limit, stream)

    if group_id is not None:
        from kops.cli.records.group import consume_as_group

        if span is not None or last is not None or latest:
            raise UsageProblem("--group reads from where the group is, so it takes no range", hint="`kops offsets seek` moves a group")
        return consume_as_group(session, group_id, wanted, choose, sink=sink, stream=stream, single=limit is not None, confirm=confirm)
    if conditions and span is None and last is None and not latest and not follow:
        session.note(f"searching all of {selection}; a range such as @-1h.. makes it shorter")
    if raw and not conditions and not latest:
        values = records.limited(records.read_values(session, wanted, stream), limit, stream)
        return run(session, values, write_values, stream, live=follow)
    if (form := sink.form) is not None and not conditions and not latest:
        parts = records.limited(records.read_parts(session, wanted, form.raw_parts, stream), limit, stream)
        return run(session, parts, lambda rows: write_bytes(form.write(rows)), stream, live=follow)
    return run(session, choose(records.read(session, wanted, stream)), sink.write, stream, live=follow, finish=finish)


def _noticed(batches: Iterator[list[Record]], formats: Mapping[str, str | None], samples: dict[str, bytes]) -> Iterator[list[Record]]:
    """Yield the batches, and keep a key and a value of which no format was named."""
    unnamed = [part for part, name in formats.items() if name is None]
    for batch in batches:
        samples.update({part: data for part in unnamed for record in batch[:1] if (data := getattr(record, part))})
        yield batch


def run(
    session: Session,
    batches: Iterator[list[T]],
    write: Callable[[list[T]], None],
    stream: Stream,
    *,
    live: bool,
    finish: Callable[[], None] = lambda: None,
) -> int:
    """Write batches until they end or are interrupted, then report on stderr what was read.

    :param live: write out each batch at once, as for a terminal
    """
    code, live = int(ExitCode.DONE), live or sys.stdout.isatty()
    try:
        with kept_stops():
            for batch in batches:
                write(batch)
                if live:
                    sys.stdout.flush()
                if stream.broken is not None:
                    break
            finish()
    except STOPS as stop:
        code = int(exit_code(stop))
    sys.stdout.flush()
    report(session, stream, interrupted=code != ExitCode.DONE)
    if stream.broken is not None:
        raise stream.broken
    return code
