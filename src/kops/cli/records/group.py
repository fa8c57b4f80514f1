"""``kops records consume --group``, loaded when it runs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kops.cli.frame.carry_out import approve_if_protected
from kops.cli.frame.session import Session
from kops.cli.records.sinks import Sink, report
from kops.core.errors import ExitCode
from kops.core.findings import names_text
from kops.core.plan import Plan, Status
from kops.core.records.models import Record
from kops.core.stops import STOPS, exit_code, kept_stops
from kops.operations.protocol.mutation import refuse_read_only
from kops.operations.protocol.run import carry_out
from kops.operations.records.consume import ReadRequest, Stream
from kops.operations.records.group import ConsumeAsGroup, plan_consume

if TYPE_CHECKING:
    from kops.gateways.kafka.records_group import GroupReader

COMMIT_SECONDS = 1.0


def consume_as_group(
    session: Session,
    group_id: str,
    wanted: ReadRequest,
    choose: Callable[[Iterator[list[Record]]], Iterator[list[Record]]],
    *,
    sink: Sink,
    stream: Stream,
    single: bool,
    confirm: str | None,
) -> int:
    """Join, write, and commit what was written; asked about in a protected context only, for ``--group`` says it."""
    refuse_read_only(session.connection)
    plan = plan_consume(session, group_id, wanted)
    reading = _CommittingWriter(choose, sink, stream)

    def agreed(shown: Plan) -> None:
        approve_if_protected(session, shown, confirm)
        session.note(f"joining group {group_id}: what is read of {wanted.selection.topic} is committed")

    result, entry = carry_out(session, plan, ConsumeAsGroup(reading.drain, single=single), approve=agreed, journal=session.journal)
    if reading.closed_pipe is not None:
        raise reading.closed_pipe
    report(session, stream, interrupted=reading.code != ExitCode.DONE)
    moved = [f"{item.target} to {item.value}" for item in result.items if item.status is Status.DONE]
    shown = names_text(moved, 5)
    session.note(f"committed for {group_id}: {shown or 'nothing new'}; journal {entry.id}; to undo: `kops undo {entry.id}`")
    session.note(*result.messages)
    for item in result.items:
        if item.error:
            session.note(f"warning: {item.error['message']}")
    if stream.broken is not None:
        raise stream.broken
    return reading.code or int(result.exit_code)


class _CommittingWriter:
    """Writes what a member of a group is given, and commits what is written."""

    def __init__(self, choose: Callable[[Iterator[list[Record]]], Iterator[list[Record]]], sink: Sink, stream: Stream) -> None:
        self._choose = choose
        self._sink = sink
        self._stream = stream
        self.code = 0
        self.closed_pipe: BrokenPipeError | None = None

    def drain(self, reader: GroupReader) -> None:
        """Go on until the end, a limit, Ctrl-C, or a closed pipe: what was not written is not committed."""
        committed = time.monotonic()
        try:
            with kept_stops():
                for batch in self._choose(self._counted(reader)):
                    self._sink.write(batch)
                    sys.stdout.flush()
                    if self._stream.broken is not None:
                        break
                    reader.written()
                    if time.monotonic() - committed > COMMIT_SECONDS:
                        reader.commit()
                        committed = time.monotonic()
                else:
                    self._sink.finish()
                    reader.written()
        except STOPS as stop:
            self.code = int(exit_code(stop))
        except BrokenPipeError as closed:
            self.closed_pipe = closed
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reader.commit()

    def _counted(self, reader: GroupReader) -> Iterator[list[Record]]:
        for batch in reader:
            self._stream.read += len(batch)
            yield batch
