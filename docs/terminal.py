"""The picture of a terminal in the README: ``python docs/terminal.py`` runs kops on a sandbox of its own and draws what it prints.

Each run makes the pictures again, light and dark, with the offsets and times of that run.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI, TerminalTheme
from rich.text import Text

FOLDER = Path(__file__).parent
COLUMNS = 96
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Rich names a font on the web; pictures in a page may load nothing, and the fallback is the reader's own."""
THEMES: dict[str, TerminalTheme] = {"light": DEFAULT_TERMINAL_THEME, "dark": DIMMED_MONOKAI}
BEFORE = (
    "sandbox up",
    "topics create payments --partitions 3 --yes",
    "records produce payments --file {input} --key-separator :",
    "offsets reset billing --to-earliest --topic payments --new-group --yes",
)
SHOWN = (
    "groups lag billing",
    "offsets reset billing --topic payments --to-latest --yes",
    "undo last --yes",
)
AFTER = ("sandbox down --delete",)


def run(line: str, environment: dict[str, str]) -> str:
    """Run kops as on a terminal, so that it colours what it prints; return that."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kops", *line.split()]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        pieces: list[bytes] = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux says so where the other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(ours)
    if process.returncode:
        raise SystemExit(f"kops {line} ended with {process.returncode}:\n{b''.join(pieces).decode()}")
    return b"".join(pieces).decode().replace("\r\n", "\n")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kops-picture-") as home:
        xdg = {f"XDG_{name}_HOME": f"{home}/{name.lower()}" for name in ("CONFIG", "STATE", "DATA")}
        environment = {**os.environ, **xdg, "COLUMNS": str(COLUMNS), "LINES": "40", "TERM": "xterm-256color", "TZ": "UTC"}
        environment.pop("NO_COLOR", None)
        payments = Path(home, "payments.txt")
        payments.write_text("".join(f"order-{number}:{number * 7 % 100}.50\n" for number in range(1200)), encoding="utf-8")
        try:
            for line in BEFORE:
                run(line.format(input=payments), environment)
            shown = [(line, run(f"{line} -q" if line.startswith("undo") else line, environment)) for line in SHOWN]
        finally:
            for line in AFTER:
                run(line, environment)
    for name, theme in THEMES.items():
        console = Console(record=True, width=COLUMNS, force_terminal=True, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        for line, output in shown:
            console.print(Text(f"$ kops {line}", style="bold"))
            console.print(Text.from_ansi(output.rstrip("\n")), "")
        svg = FONT.sub("", console.export_svg(title="kops", theme=theme, unique_id="kops"))
        text = svg.replace("Fira Code, monospace", "ui-monospace, monospace")
        (FOLDER / f"terminal-{name}.svg").write_text("\n".join(part.rstrip() for part in text.splitlines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
