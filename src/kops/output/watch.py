"""A live table on a terminal, and one plain line per look in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from kops.core.groups.lag import age_text
from kops.core.groups.lag_rates import KEYS, Line, Look, rate_text, sparkline
from kops.core.visible import visible
from kops.output.guard import unguarded
from kops.output.json_text import json_text

SPARK_WIDTH = 8
OTHER_LINES = 5
"""Lines of the terminal that the table's own frame occupies."""

Show = Callable[[Look, str, Sequence[str]], None]
"""Shows a look, its time as ISO 8601, and the limits that it exceeds."""


@contextmanager
def live_table(by: str, stream: TextIO) -> Iterator[Show]:
    """Provide a function that draws each look in place of the previous one."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=unguarded(stream))
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:

        def show(look: Look, time: str, exceeded: Sequence[str]) -> None:
            live.update(_table(look, by, time, exceeded, max(1, console.height - OTHER_LINES)), refresh=True)

        yield show


def plain_lines(stream: TextIO) -> Show:
    def show(look: Look, time: str, exceeded: Sequence[str]) -> None:
        total = look.total
        parts = [
            time,
            f"lag {total.lag}",
            f"({_signed(total.change)})",
            f"consumed {rate_text(total.consumed)}",
            f"produced {rate_text(total.produced)}",
        ]
        if total.time_lag_ms is not None:
            parts.append(f"time {age_text(total.time_lag_ms)}")
        if look.lines and look.lines[0].lag:
            parts.append(f"largest {_name(look.lines[0])} {look.lines[0].lag}")
        if exceeded:
            parts.append(f"over the limit: {visible(', '.join(exceeded))}")
        stream.write("  ".join(parts) + "\n")
        stream.flush()

    return show


def json_lines(by: str, stream: TextIO) -> Show:
    def show(look: Look, time: str, exceeded: Sequence[str]) -> None:
        body: dict[str, Any] = {"time": time, **_json(look.total), "over_limit": list(exceeded)}
        body[f"{by}s"] = [dict(zip(KEYS[by], line.name, strict=True)) | _json(line) for line in look.lines]
        stream.write(json_text(body) + "\n")
        stream.flush()

    return show


def _json(line: Line) -> dict[str, Any]:
    return {
        "lag": line.lag,
        "lag_per_second": line.change,
        "consumed_per_second": line.consumed,
        "produced_per_second": line.produced,
        "time_lag_ms": line.time_lag_ms,
        "seconds_left": line.seconds_left,
    }


def _table(look: Look, by: str, time: str, exceeded: Sequence[str], most: int) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    total = look.total
    behind = "" if not total.time_lag_ms else f", {age_text(total.time_lag_ms)} behind"
    title = Text(f"{time}  lag {total.lag:,}{behind}  {_signed(total.change)}  {sparkline(total.history, 3 * SPARK_WIDTH)}")
    table = Table(box=None, pad_edge=False)
    names = [visible(str(part)) for line in look.lines for part in line.name]
    width = len(KEYS[by])
    same = width > 1 and len(set(names[::width])) == 1  # one group: its name is in the command
    for key in KEYS[by][same:]:  # names shrink if the terminal is narrow, numbers of partitions never
        if key == "partition":
            table.add_column("PART", justify="right", no_wrap=True, min_width=4)
        else:
            table.add_column(key.upper())
    for heading in ("LAG", "CHANGE", "CONSUMED", "PRODUCED", "TIME", "LEFT"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=SPARK_WIDTH)
    for line in look.lines[:most]:
        table.add_row(
            *(Text(visible(str(part)), no_wrap=True, overflow="ellipsis") for part in line.name[same:]),
            str(line.lag),
            _signed(line.change),
            rate_text(line.consumed),
            rate_text(line.produced),
            "-" if line.time_lag_ms is None else age_text(line.time_lag_ms),
            "-" if line.seconds_left is None else age_text(int(line.seconds_left * 1000)),
            sparkline(line.history, SPARK_WIDTH),
        )
    said = [f"... and {len(look.lines) - most} more"] if len(look.lines) > most else []
    said += [f"over the limit: {visible(', '.join(exceeded))}"] if exceeded else []
    return Group(title, table, *map(Text, said))


def _name(line: Line) -> str:
    return visible(str(line.name[0]) if len(line.name) == 1 else f"{line.name[0]} {line.name[1]}:{line.name[2]}")


def _signed(rate: float | None) -> str:
    text = rate_text(rate)
    return f"+{text}" if rate is not None and rate > 0 else text
