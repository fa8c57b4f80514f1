"""One session a process: what every command is handed. It makes things when they are first used."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kops.cli.frame.options import MARKUP, Approval
from kops.core.errors import ExitCode, KopsError
from kops.core.permit import Permit
from kops.core.visible import indented

if TYPE_CHECKING:
    from kops.config.connection import Connection
    from kops.config.paths import Directories
    from kops.core.blocks import Block, Row
    from kops.core.plan import Plan
    from kops.core.progress import Progress
    from kops.gateways.connect import Connect
    from kops.gateways.kafka import Kafka
    from kops.operations.protocol.journal import Journal
    from kops.output.table import Column


class Session:
    """Implements ``kops.operations.services.Services``, renders, and carries plans out.

    :param settings: the shared options, by name; read late, because those after the verb count too
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        if "kafka" in self.__dict__:
            self.kafka.close()

    @property
    def output_format(self) -> str:
        """Return the format of stdout; markup is a table, written in another way."""
        return "table" if self.markup else self.written_format

    @property
    def written_format(self) -> str:
        """Return the format of stdout, markup included."""
        return str(self.settings.get("output") or "table")

    @property
    def markup(self) -> str | None:
        """Return the markup that tables are written in, if one is chosen."""
        chosen = self.settings.get("output")
        return chosen if chosen in MARKUP else None

    @property
    def quiet(self) -> bool:
        """Whether stderr carries errors and questions only."""
        return bool(self.settings.get("quiet"))

    @cached_property
    def directories(self) -> Directories:
        from kops.config.paths import directories

        return directories(os.environ)

    @cached_property
    def connection(self) -> Connection:
        """The connection that flags, environment and configuration give."""
        from kops.config.load import resolve

        found = resolve(
            self.directories,
            os.environ,
            context=self.settings.get("context"),
            bootstrap_servers=self.settings.get("bootstrap_server"),
            properties=self.settings.get("properties", ()),
            command_config=self.settings.get("command_config"),
        )
        for warning in found.warnings:
            self.note(f"warning: {warning}")
        timeout = self.settings.get("timeout")
        return replace(found, timeout=timeout) if timeout else found

    @cached_property
    def permit(self) -> Permit:
        return Permit()

    @cached_property
    def kafka(self) -> Kafka:
        """The cluster; connects when first asked.

        :raises ConfigError: when nothing says where its brokers are
        """
        from kops.config.load import require_brokers
        from kops.gateways.kafka import Kafka

        require_brokers(self.connection, self.directories, os.environ)
        return Kafka(self.connection, verbose=bool(self.settings.get("verbose")), notify=self.progress.step, permit=self.permit)

    @cached_property
    def connect(self) -> Connect:
        """The Connect cluster; its workers are asked over one HTTP session."""
        from kops.gateways.connect import Connect

        return Connect(self.connection, notify=self.progress.step, permit=self.permit)

    @cached_property
    def journal(self) -> Journal:
        from kops.operations.protocol.journal import Journal

        return Journal(self.directories.state / "journal")

    @cached_property
    def progress(self) -> Progress:
        """Progress on stderr, unless quiet."""
        from kops.core.progress import NoProgress
        from kops.output.progress import StreamProgress

        return NoProgress() if self.quiet else StreamProgress(sys.stderr, terminal=sys.stderr.isatty())

    def now(self) -> datetime:
        return datetime.now(timezone.utc)

    @property
    def cluster_words(self) -> list[str]:
        """How the command line names the cluster, for commands that are suggested."""
        options = {"-c": "context", "-B": "bootstrap_server", "--command-config": "command_config"}
        named = [word for option, name in options.items() if (given := self.settings.get(name)) for word in (option, str(given))]
        return [*named, *(word for each in self.settings.get("properties", ()) for word in ("-X", str(each)))]

    def note(self, *texts: str) -> None:
        """Write what is not data to stderr, each text on lines of its own; a closed stderr stops nothing."""
        if self.quiet:
            return
        from kops.core.suggestions import completed
        from kops.output.colour import note_line, write_coloured

        with suppress(BrokenPipeError):
            for text in texts:
                write_coloured(note_line(indented(completed(text, self.cluster_words)), sys.stderr) + "\n", sys.stderr)

    def missing(self, problems: Mapping[str, KopsError]) -> int:
        """Report the things of many that did not answer, and why; return the exit code."""
        for name, problem in sorted(problems.items()):
            named = name or repr(name)
            self.note(f"warning: {named} is missing: {problem.message}")
        return int(ExitCode.PARTIAL if problems else ExitCode.DONE)

    def render(self, rows: Iterable[Row], columns: Sequence[str | Column], *, whole: bool = False) -> None:
        """Write rows to stdout in the chosen format.

        :param whole: on a terminal, wrap the table's sentences instead of cutting anything
        """
        from kops.output.render import render_rows

        render_rows(rows, columns, self.written_format, sys.stdout, terminal=sys.stdout.isatty(), whole=whole)

    def render_object(self, body: Row, *, name: str = "name") -> None:
        from kops.output.render import render_object

        render_object(body, self.written_format, sys.stdout, name=name, terminal=sys.stdout.isatty())

    def render_blocks(self, blocks: Iterable[Block], columns: Sequence[Column], texts: Mapping[str, Callable[[Any], str]]) -> None:
        """Write very many rows to stdout as a table.

        :param texts: how to write the values of some columns, by key
        """
        from kops.output.table import table_of_blocks, write_table

        table = table_of_blocks(blocks, columns, texts)
        write_table(table, sys.stdout, output_format=self.written_format, terminal=sys.stdout.isatty())

    def carry_out(self, plan: Plan, approval: Approval, *, undoes: str = "", finishes: str = "") -> int:
        from kops.cli.frame.carry_out import carry_out

        return carry_out(self, plan, approval, undoes=undoes, finishes=finishes)
