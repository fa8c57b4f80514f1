"""Secrets: where they may come from, how they are read, and whether others can read the file."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from kops.config.connection import Secret
from kops.config.files import read_text
from kops.core.errors import ConfigError

LARGEST = 1 << 20
"""Bytes of a file that holds a secret."""
COMMAND_TIMEOUT = 30.0
"""Seconds that a command may take to print a secret; it may itself ask for a passphrase."""


def from_file(path: Path) -> Secret:
    """Return the secret stored in a file; a newline at the end is not part of it."""

    def read() -> str:
        text = read_text(path, what="secret in", largest=LARGEST)
        return _present(text, f"the file {path}")

    return Secret(f"file {path}", read)


def from_environment(variable: str, environ: Mapping[str, str]) -> Secret:
    def read() -> str:
        if variable not in environ:
            raise ConfigError(f"the environment variable {variable} is not set", hint=f"it should hold a secret: export {variable}")
        return _present(environ[variable], f"the environment variable {variable}")

    return Secret(f"environment {variable}", read)


def from_command(command: str) -> Secret:
    return Secret(f"command {_first_word(command)}", lambda: run_command(command))


def from_value(origin: str, value: str) -> Secret:
    """Return a secret that was found in another kind of file, such as a Java ``client.properties``."""
    return Secret(origin, lambda: value)


def run_command(command: str, time_out: float = COMMAND_TIMEOUT) -> str:
    """Run a command without a shell, and return its output without the final newline.

    Errors repeat neither its output nor its arguments: both can contain secrets.

    :raises ConfigError: if it cannot be run, fails, prints nothing or takes too long
    """
    import shlex
    import subprocess

    name = _first_word(command)
    try:
        words = shlex.split(command)
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=time_out, check=False)
        text = done.stdout.decode("utf-8")
    except subprocess.TimeoutExpired:
        raise ConfigError(f"the command {name}, which should print a secret, took longer than {time_out:g} s") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the command {name} printed something that is not UTF-8 text") from None
    except (OSError, ValueError, IndexError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it cannot be split into words"
        hint = "it runs without a shell: no pipes, no variables; put those into a script"
        raise ConfigError(f"cannot run the command {name}, which should print a secret: {reason}", hint=hint) from None
    if done.returncode != 0:
        hint = "run it by hand to see why; its output is not shown here, because it may hold the secret"
        raise ConfigError(f"the command {name}, which should print a secret, ended with exit code {done.returncode}", hint=hint)
    return _present(text, f"the output of the command {name}")


def exposure(path: Path, *, holds_secret: bool = True) -> str | None:
    """Return a warning if everybody on this machine can change a file, or read one that holds a secret; otherwise None.

    :param holds_secret: whether the file must not be readable by others
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    if os.name == "posix" and mode & stat.S_IWOTH:
        return f"{path} can be changed by everybody on this machine; chmod 600 {path}"
    if os.name == "posix" and mode & stat.S_IROTH and holds_secret:
        return f"{path} can be read by everybody on this machine; chmod 600 {path}"
    return None


def _present(text: str, what: str) -> str:
    value = text[:-1] if text.endswith("\n") else text
    value = value.removesuffix("\r")
    if not value:
        raise ConfigError(f"{what} should hold a secret and is empty")
    return value


def _first_word(command: str) -> str:
    words = command.split(maxsplit=1)
    return words[0].strip("'\"") if words else repr(command)
