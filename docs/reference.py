"""The reference of all commands, from their own help: Markdown for the site, and man pages.

``python docs/reference.py man FOLDER`` writes a man page per noun; the site is made by ``docs/site.py``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kops import __version__
from kops.cli.frame.main import NOUNS, cli
from kops.cli.frame.options import SHARED_OPTIONS

SHARED = {make().name for make in SHARED_OPTIONS}
INTRODUCTION = (
    "Made from the commands' own help. [Conventions](../conventions.md#shared-options) has the options that every command shares."
)


def contexts(noun: str) -> Iterator[click.Context]:
    """Yield the context of a noun, then those of its verbs at any depth."""
    root = click.Context(cli, info_name="kops", **cli.context_settings)
    command = cli.get_command(root, noun)
    if command is not None:
        yield from _below(click.Context(command, info_name=noun, parent=root))


def _below(context: click.Context) -> Iterator[click.Context]:
    yield context
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            verb = group.get_command(context, name)
            if verb is not None and not verb.hidden:
                yield from _below(click.Context(verb, info_name=name, parent=context))


def options(context: click.Context) -> list[tuple[str, str]]:
    """Return a command's own options with their help, as ``--help`` shows them."""
    shown = [param for param in context.command.get_params(context) if isinstance(param, click.Option) and param.name not in SHARED]
    return [record for param in shown if "--help" not in param.opts and (record := param.get_help_record(context))]


def usage(context: click.Context) -> str:
    """Return the line that shows how a command is called."""
    return " ".join([context.command_path, *context.command.collect_usage_pieces(context)])


def paragraphs(context: click.Context) -> Iterator[tuple[str, bool]]:
    """Yield each paragraph of a command's help, and whether its lines are to stay as they are."""
    for paragraph in inspect.cleandoc(context.command.help or "").split("\n\n"):
        kept = paragraph.startswith("\b")
        text = paragraph.removeprefix("\b").strip("\n")
        if text.strip():
            yield (text if kept else " ".join(text.split())), kept


def markdown(noun: str) -> str:
    """Return the page of a noun."""
    parts = []
    for context in contexts(noun):
        level = "#" if context.info_name == noun and not parts else "##"
        parts.append(f"{level} {context.command_path}")
        if not parts[1:]:
            parts.append(INTRODUCTION)
        parts.append(f"```text\n{usage(context)}\n```")
        parts += [f"```text\n{text}\n```" if kept else _escaped(text) for text, kept in paragraphs(context)]
        rows = [f"| {_code(names)} | {_cell(text)} |" for names, text in options(context)]
        if rows:
            parts.append("\n".join(["| option | |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def man(noun: str) -> str:
    """Return the man page of a noun, in roff."""
    found = list(contexts(noun))
    lines = [f'.TH "KOPS-{noun.upper()}" "1" "" "kops {__version__}" "kops"', ".SH NAME"]
    lines.append(_roff(f"kops-{noun} - {NOUNS[noun][1].rstrip('.')}"))
    lines += [".SH SYNOPSIS", ".nf", *(_roff(usage(context)) for context in found), ".fi"]
    for context in found:
        lines.append(".SH DESCRIPTION" if context is found[0] else f'.SH "{context.command_path.upper()}"')
        for text, kept in paragraphs(context):
            lines += [".PP", *([".nf", *map(_roff, text.split("\n")), ".fi"] if kept else [_roff(text)])]
        for names, text in options(context):
            lines += [".TP", f"\\fB{_roff(names)}\\fR", _roff(" ".join(text.split()))]
    lines += [".SH SEE ALSO", ".BR kops (1)"]
    return "\n".join(lines) + "\n"


def man_of_all() -> str:
    """Return the man page of kops itself: its nouns, and the options that every command shares."""
    root = click.Context(cli, info_name="kops", **cli.context_settings)
    lines = [f'.TH "KOPS" "1" "" "kops {__version__}" "kops"', ".SH NAME", "kops \\- operate Kafka", ".SH SYNOPSIS", _roff(usage(root))]
    lines.append(".SH DESCRIPTION")
    for text, _ in paragraphs(root):
        lines += [".PP", _roff(text)]
    lines.append(".SH COMMANDS")
    for noun, (_, summary) in NOUNS.items():
        lines += [".TP", f"\\fBkops\\-{noun}\\fR(1)", _roff(summary)]
    lines.append(".SH OPTIONS")
    for record in (make().get_help_record(root) for make in SHARED_OPTIONS):
        if record:
            lines += [".TP", f"\\fB{_roff(record[0])}\\fR", _roff(record[1])]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _code(names: str) -> str:
    escaped = names.replace("<", "&lt;").replace("|", "&#124;")
    return f"<code>{escaped}</code>"


def main(folder: Path) -> None:
    """Write the man pages."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kops.1").write_text(man_of_all(), encoding="utf-8")
    for noun in NOUNS:
        (folder / f"kops-{noun}.1").write_text(man(noun), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] != ["man"] or len(sys.argv) != 3:  # noqa: PLR2004
        sys.exit("usage: python docs/reference.py man FOLDER")
    main(Path(sys.argv[2]))
