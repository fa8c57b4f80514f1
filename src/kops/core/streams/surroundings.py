"""What a program may depend on besides its input and its code, as a capture notes it, and where a rebuild has something else. Pure.

Values are kept as digests of 16 bits (``kops.agent.Surroundings``), so that a file with a capture gives no password away: of all that
somebody tries, one in 65,536 fits. What has the name of a secret is only said to be set.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.secret_shapes import is_secret_name

VARIABLE, PROPERTY, FILE, HOST, OPTION, READS = "variable", "property", "file", "host", "option", "reads"
CHARSET, ZONE, LOCALE, JAVA = "charset", "zone", "locale", "java"
MISSING, NEW, DIFFERS, UNKNOWN = "missing", "new", "differs", "unknown"
"""``UNKNOWN``: what a file held when the program was captured, which it did not read then."""
UNREADABLE = "unreadable"
_THEN = "when the program was captured"
_ELSEWHERE = "or capture the program where the application runs"
_SAID = {
    VARIABLE: {
        MISSING: (f"was set {_THEN}", f": set it, {_ELSEWHERE}"),
        NEW: (f"was not set {_THEN}", f": unset it, {_ELSEWHERE}"),
        DIFFERS: (f"had another value {_THEN}", f": set that, {_ELSEWHERE}"),
    },
    FILE: {
        MISSING: (f"is gone, and was there {_THEN}", f": put it there, {_ELSEWHERE}"),
        NEW: (f"is there, and was not {_THEN}", f": move it away, {_ELSEWHERE}"),
        DIFFERS: (f"is not what it was {_THEN}", f": put that there, {_ELSEWHERE}"),
        UNKNOWN: (f"was not read {_THEN}", ", and what it held then is not known"),
    },
    HOST: {
        DIFFERS: (f"was another one {_THEN}", ": capture the program where the application runs"),
        UNKNOWN: (f"was not read {_THEN}", ", and which it was then is not known"),
    },
}
"""What differs: of a variable, property or option, of a file, of a host; and what to do."""
SET_BY_KOPS = ("JAVA_TOOL_OPTIONS", "SERVER_PORT", "MANAGEMENT_SERVER_PORT", "ROCKSDB_SHAREDLIB_DIR")
"""Variables that kops gives a program values of its own for."""

_OPTIONS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
"""Variables with options of the JVM: the last one that sets a property counts."""
_NAMES = {CHARSET: "charset", ZONE: "time zone", LOCALE: "locale", JAVA: "Java"}
_COPY, _SET, _DIGITS = "copy", "set", 4
_OF_SESSION = re.compile(
    r"_|SHLVL|PWD|OLDPWD|TERM|COLORTERM|COLUMNS|LINES|WINDOWID|STY|TMUX(_PANE)?|SSH_\w+|XDG_\w+|INVOCATION_ID|JOURNAL_STREAM|PATH|MANPATH"
    r"|LS_COLORS|PS\d|HIST\w+|EDITOR|VISUAL|PAGER|LESS\w*|MAIL|VIRTUAL_ENV\w*|PYTHON\w*|KOPS_\w+|LANG|LC_\w+|TZ"
)
"""Variables of the shell, login or service that something is started from: they differ each time, and who copies all reads them too.

What the last ones say is compared as charset, locale and time zone.
"""
_COMPARED_OTHERWISE = re.compile(
    r"user\.(language|script|country|variant)(\.display|\.format)?|user\.timezone|file\.encoding|java\.class\.path|jdk\.module\.path"
    r"|sun\.java\.command|kops\..*"
)
_OF_JVM = re.compile(r"(java|jdk|sun|os|awt|native|stdin|stdout|stderr|file|path|line)\..*")
"""Properties by which the JVM describes itself and its machine; what counts of that is ``JAVA``."""
_DEFINED = re.compile(r"-D([^=]+)(?:=(.*))?", re.DOTALL)
_OF_MACHINE = ("-D", "-X", "-javaagent:", "-agent")
"""Options that are seen otherwise, or that change how fast a program is, and not what it computes."""


@dataclass(frozen=True)
class Read:
    """A variable, property, file or name of the host that a program has read.

    :param digest: of its value; None: it was not set, or not there
    :param by: the class that read it
    :param how: ``name``, or ``copy`` where it was read with all others, or by the JDK for itself
    """

    kind: str
    name: str
    digest: str | None
    by: str
    how: str


@dataclass(frozen=True)
class Surroundings:
    """Those in which a program was captured.

    :param java: its feature release, such as 17
    :param locale: system properties by which the JVM has its locale
    :param options: of the JVM, wherever they came from
    :param variables: digests by name
    :param properties: digests by name, those that the JVM itself sets included
    :param read: while the program was built
    """

    charset: str
    zone: str
    java: str
    locale: Mapping[str, str]
    options: tuple[str, ...]
    variables: Mapping[str, str]
    properties: Mapping[str, str]
    read: tuple[Read, ...]

    @property
    def flags(self) -> tuple[str, ...]:
        """Options by which another JVM has the same charset, zone and locale."""
        locale = (f"-D{name}={value}" for name, value in sorted(self.locale.items()))
        return (f"-Dfile.encoding={self.charset}", f"-Duser.timezone={self.zone}", *locale)


@dataclass(frozen=True)
class Difference:
    """Where a program has other surroundings than when it was captured.

    :param kind: ``VARIABLE``, ``ZONE`` and so on
    :param change: ``MISSING`` and so on
    :param name: of the variable, property or file; of reads why they were not seen; of a charset, zone, locale or Java what it was, and is
    :param by: the class that reads it; empty where that is the JVM
    """

    kind: str
    change: str
    name: str
    by: str = ""

    @property
    def code(self) -> str:
        return f"{self.kind}-{self.change}"

    @property
    def text(self) -> str:
        """One line: what differs, and what to do."""
        if self.kind in _NAMES:
            return f"the {_NAMES[self.kind]} of the program's JVM was {self.name}: start it as it was captured"
        if self.kind == READS:
            return f"not all reads of variables and files by the program could be seen: {self.name}"
        of_kind = {PROPERTY: "the system property ", OPTION: "the JVM's option ", HOST: "the name of the host"}.get(self.kind, "")
        who = f" ({self.by} reads it)" if self.by else ""
        said, what_to_do = _SAID.get(self.kind, _SAID[VARIABLE])[self.change]
        return f"{of_kind}{self.name} {said}{who}{what_to_do}"


def digest_of(application: str, kind: str, name: str, value: str | bytes) -> str:
    """Return the digest of a value, as ``kops.agent.Surroundings`` makes it."""
    if kind != FILE and is_secret_name(name):
        return _SET
    found = hashlib.sha256("".join(f"{each}\0" for each in (application, kind, name)).encode("utf-8", "surrogateescape"))
    found.update(value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape"))
    return found.hexdigest()[:_DIGITS]


def before_start(
    application: str,
    then: Surroundings,
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    host: str,
    digest_of_file: Callable[[str], str | None],
) -> list[Difference]:
    """Return what differs before the program is started again: what it read while it was built.

    :param command: with which its JVM is started, then and now
    :param environment: of the JVM now
    :param host: name of this machine
    :param digest_of_file: gives the digest of a file as it is now; None: there is none
    """
    options = [word for name in _OPTIONS for word in _words(environment.get(name, ""))]
    now, in_command = _defined(options), _defined(command)
    provided = then.properties.keys() - _defined(then.options).keys()
    found = []
    for read in then.read:
        if read.kind == FILE:
            digest = digest_of_file(read.name)
        else:
            if read.kind == PROPERTY and (read.name in in_command or read.name in provided):  # it is the same, or only the JVM will say
                continue
            value = host if read.kind == HOST else (environment if read.kind == VARIABLE else now).get(read.name)
            if value is not None and not value.isascii():  # as what the JVM reads it depends on its locale
                continue
            digest = None if value is None else digest_of(application, read.kind, read.name, value)
        found.append(_difference(read, read.digest, digest))
    lost = [each for each in then.options if each not in {*options, *command} and not each.startswith(_OF_MACHINE)]
    return [*(each for each in found if each), *(Difference(OPTION, MISSING, name) for name in lost)]


def while_it_ran(then: Surroundings, notes: Sequence[str]) -> list[Difference]:
    """Return what differed in the JVMs that ran a program, also of what it first read while it was run.

    :param notes: what each of them said, as JSON
    """
    return list(dict.fromkeys(_of_notes(then, notes)))


def _of_notes(then: Surroundings, notes: Sequence[str]) -> Iterator[Difference]:
    known = {(read.kind, read.name): read.digest for read in then.read if read.kind in (FILE, HOST)}
    given = _defined(then.options)
    for note in notes:
        now: dict[str, Any] = json.loads(note)
        for kind, before, after in (
            (CHARSET, then.charset, now[CHARSET]),
            (ZONE, then.zone, now[ZONE]),
            (JAVA, then.java, now[JAVA]),
            (LOCALE, _locale_text(then.locale), _locale_text(now[LOCALE])),
        ):
            if before != after:
                yield Difference(kind, DIFFERS, f"{before}, and is {after}")
        if now["unseen"]:
            yield Difference(READS, UNKNOWN, now["unseen"])
        for each in now["read"]:
            read = Read(**each)
            key = read.kind, read.name
            if read.kind in (FILE, HOST):
                unknown = Difference(read.kind, UNKNOWN, read.name, read.by)
                difference = _difference(read, known[key], read.digest) if key in known else unknown
            elif read.kind == PROPERTY and read.how != _COPY and read.name not in given and _OF_JVM.fullmatch(read.name):
                continue
            else:
                known_values = then.variables if read.kind == VARIABLE else then.properties
                difference = _difference(read, known_values.get(read.name), read.digest)
            if difference:
                yield difference


def _difference(read: Read, then: str | None, now: str | None) -> Difference | None:
    if then == now or _is_left_out(read):
        return None
    return Difference(read.kind, NEW if then is None else MISSING if now is None else DIFFERS, read.name, read.by)


def _is_left_out(read: Read) -> bool:
    if read.kind == VARIABLE:
        return read.name in (*SET_BY_KOPS, *_OPTIONS) or (read.how == _COPY and _OF_SESSION.fullmatch(read.name) is not None)
    return read.kind == PROPERTY and _COMPARED_OTHERWISE.fullmatch(read.name) is not None


def _locale_text(locale: Mapping[str, str]) -> str:
    return " ".join(f"{name.removeprefix('user.')}={value}" for name, value in sorted(locale.items()) if value)


def _defined(words: Sequence[str]) -> dict[str, str]:
    """Return the system properties that options set."""
    return {found[1]: found[2] or "" for word in words if (found := _DEFINED.fullmatch(word))}


def _words(text: str) -> list[str]:
    """Split options as the JVM does: quotes of either kind, and no escapes."""
    split = shlex.shlex(text, posix=True, punctuation_chars=False)
    split.whitespace_split, split.escape, split.commenters = True, "", ""
    try:
        return list(split)
    except ValueError:  # a quote without an end, which the JVM refuses
        return text.split()
