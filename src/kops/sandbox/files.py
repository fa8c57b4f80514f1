"""Files of settings and of arguments as Java reads them, and lock files."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from kops.core.errors import Refused
from kops.gateways.machine.private_files import lock_whole


def property_lines(settings: dict[str, str]) -> str:
    """Format a Java properties file: Latin-1 with escapes, as ``java.util.Properties`` reads a stream."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\")
    text = "\\" + text if text.startswith(" ") else text
    utf16 = text.encode("utf-16-be")
    units = (int.from_bytes(utf16[at : at + 2], "big") for at in range(0, len(utf16), 2))
    return "".join(chr(unit) if " " <= chr(unit) <= "~" else f"\\u{unit:04x}" for unit in units)


def argument_lines(arguments: list[str]) -> str:
    """Format a Java argument file (``java @FILE``), which keeps class paths and secrets out of ``ps``."""
    escaped = (argument.replace("\\", "\\\\").replace('"', '\\"') for argument in arguments)
    return "".join(f'"{argument}"\n' for argument in escaped)


@contextlib.contextmanager
def locked(file: Path, *, what: str, seconds: float = 120.0) -> Iterator[None]:
    """Hold a lock file; the operating system releases it when the process dies.

    :param what: what is being changed, for the error: ``sandbox demo``
    :raises Refused: if another process holds it for ``seconds``
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    with file.open("a") as stream:
        while not lock_whole(stream.fileno()):
            if time.monotonic() > deadline:
                raise Refused(f"another kops is changing {what}", hint="wait for it, or stop it")
            time.sleep(0.1)
        yield
