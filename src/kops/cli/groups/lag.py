"""``kops groups lag``, once or watched."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.cli.frame.session import Session
from kops.core.durations import parse_duration
from kops.core.errors import ExitCode, UsageProblem
from kops.core.findings import names_text
from kops.core.groups.lag import Limits, age_text

if TYPE_CHECKING:
    from kops.core.blocks import Block, Row
    from kops.operations.groups.lag import LagReport


EVERY = {"*", ".*"}
"""What matches every group; that there is none then is an answer."""


@dataclass(frozen=True)
class LagRequest:
    names: tuple[str, ...]
    regex: bool
    by: str
    isolation: str
    times: bool | None
    within: int | None
    limits: Limits

    @classmethod
    def of(cls, names: tuple[str, ...], *, regex: bool, by: str, isolation: str, within: str | None, **options: Any) -> LagRequest:
        """Read the options of the command line.

        :raises UsageProblem: for a text that is not a valid duration
        """
        longest = parse_duration(options["max_time"]) if options["max_time"] else None
        times = True if options["times"] is None and longest is not None else options["times"]
        if longest is not None and times is False:
            raise UsageProblem("--max-time needs the times that --no-time leaves out", hint="leave one of them away")
        limits = Limits(options["max_lag"], longest)
        return cls(names, regex, by, isolation, times, parse_duration(within) if within else None, limits)

    def ask(self, session: Session) -> LagReport:
        from kops.operations.groups.lag import lag

        return lag(session, self.names, regex=self.regex, isolation=self.isolation, times=self.times, within=self.within)

    def summed(self, blocks: Iterable[Block]) -> Sequence[Row]:
        """Return rows as --by sums them up."""
        from kops.operations.groups.lag import by_group, by_topic

        if self.by == "partition":
            return [row for block in blocks for row in block.rows()]
        return by_group(blocks) if self.by == "group" else by_topic(blocks)


def show_lag(session: Session, request: LagRequest) -> int:
    """Show the lag as it is now, and return the exit code."""
    from kops.operations.groups.lag import Sums, added_up

    report = request.ask(session)
    total, exceeded = Sums(), ExceededLimits(request.limits)
    blocks = added_up(report.blocks, total)
    if request.by == "partition":
        render_partitions(session, report, exceeded.watched(blocks))
    else:
        first = ("group", "state") if request.by == "group" else ("topic", "groups")
        sums = request.summed(exceeded.watched_for_times(blocks))
        exceeded.look_at(sums)
        render_sums(session, sums, first)
    session.note(total.sentence() if total.partitions else f"the brokers show no committed offsets of {' '.join(request.names)}")
    matched = report.groups or report.problems or report.without_offsets or set(request.names) & EVERY
    if report.without_offsets:
        session.note(f"without committed offsets, and left out: {names_text(report.without_offsets)}")
    for sentence in report.details.warnings:
        session.note(f"warning: {sentence}")
    for name, problem in report.problems.items():
        session.note(f"warning: {name}: {problem.message}")
    if exceeded.first:
        session.note(exceeded.sentence())
        return int(ExitCode.FAILED)
    if not matched:
        session.note("no group matches; `kops groups list` shows those that there are")
        return int(ExitCode.FAILED)
    return int(ExitCode.PARTIAL if report.problems else ExitCode.DONE)


class ExceededLimits:
    """The rows beyond the limits, remembered as they go by."""

    NAMED = 5

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.first: list[str] = []
        self.count = 0

    def watched(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield blocks unchanged, remembering as they are read."""
        for block in blocks:
            if self._limits != Limits():  # rows are made only if they are needed
                self.look_at(block.rows())
            yield block

    def watched_for_times(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield blocks unchanged, remembering the partitions whose time is not known: a sum has the largest of the others only."""
        for block in blocks:
            if self._limits.milliseconds is not None:
                self.look_at(row for row in block.rows() if self._limits.time_unknown(row))
            yield block

    def look_at(self, rows: Iterable[Row]) -> None:
        for text in filter(None, map(self._limits.exceeded_by, rows)):
            self.count += 1
            if len(self.first) < self.NAMED:
                self.first.append(text)

    def sentence(self) -> str:
        """Name the first of them, and count the others."""
        more = f" and {self.count - len(self.first)} more" if self.count > len(self.first) else ""
        return f"over the limit: {', '.join(self.first)}{more}"


def render_partitions(session: Session, report: LagReport, blocks: Iterable[Block]) -> None:
    """Render a row for each partition; a table of one group leaves out its name, and columns without values."""
    from kops.output.json_text import write_json_blocks
    from kops.output.table import Column

    if session.output_format == "json":
        write_json_blocks(blocks, sys.stdout)
        return
    if session.output_format == "name":
        session.render(({"group": name} for name in dict.fromkeys(block.common["group"] for block in blocks)), ["group"])
        return
    where: list[str | Column] = ["group", "topic", "partition", "committed", "log_start_offset", "log_end_offset", "lag"]
    if session.output_format != "table":
        session.render((row for block in blocks for row in block.rows()), [*where, "time_lag_ms", "note"])
        return
    columns = [Column("topic"), Column("partition", "PART"), Column("committed"), Column("log_end_offset", "END"), Column("lag")]
    if len(report.offsets) > 1:
        columns.insert(0, Column("group"))
    if report.details.known:
        columns.append(Column("time_lag_ms", "TIME"))
    session.render_blocks(blocks, [*columns, Column("note")], {"time_lag_ms": age_text})


def render_sums(session: Session, rows: Sequence[Row], first: Sequence[str]) -> None:
    from kops.core.blocks import blocks_of
    from kops.output.table import Column

    keys = [*first, "partitions", "lag", "largest_lag", "time_lag_ms", "without_commit", "past_end"]
    if session.output_format != "table":
        session.render(rows, keys)
        return
    titles = {"largest_lag": "LARGEST", "time_lag_ms": "TIME", "without_commit": "NO COMMIT", "past_end": "PAST END"}
    columns = [Column(key, titles.get(key, "")) for key in keys if key != "past_end" or any(row[key] for row in rows)]
    session.render_blocks(blocks_of(rows), columns, {"time_lag_ms": age_text})
