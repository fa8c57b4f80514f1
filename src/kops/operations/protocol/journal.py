"""The journal: an entry on disk, written before a mutation starts and closed after it.

One JSON file per entry in the state directory. Entries are written as a whole, synced and renamed, so a crash leaves either the old or the
new content. An entry that is still ``open`` although its process has ended is a crash: it is shown, and can be finished or undone.

An id is a time for people and a number, one more than that of any entry before: the number is the order, whatever the clock said.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path

from kops.config.durable import write_whole
from kops.config.files import read_json
from kops.core.errors import ConfigError, NotFound, UsageProblem
from kops.core.plan import DerivedItems, ItemResult, Json, Plan, Status, plan_from_json
from kops.core.times import time_text, to_milliseconds
from kops.gateways.machine.processes import ProcessIdentity, start_time
from kops.output.json_text import json_text

JOURNAL_VERSION = 1
_LOCK = ".lock"
_NUMBERED = re.compile(r"\d{8}T\d{9}-(\d{6,})")


class EntryStatus(str, Enum):
    OPEN = "open"
    DONE = "done"
    PARTIAL = "partial"
    FAILED = "failed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    INTERRUPTED = "interrupted"

    @classmethod
    def of(cls, status: Status) -> EntryStatus:
        return {Status.PARTIAL: cls.PARTIAL, Status.FAILED: cls.FAILED, Status.UNKNOWN: cls.UNKNOWN}.get(status, cls.DONE)


@dataclass(frozen=True)
class Entry:
    """One mutation: who, when, where, the plan and the outcome.

    :param process_started: distinguishes the process from a later one with the same pid
    :param started: ISO-8601 UTC, as is ``ended``, which is empty while the entry is open
    :param rest: the status of every changing item that is not in ``results``; empty if all are
    :param left: what ``aftermath.look`` returned at the end; None: it had no traces, or was stopped in the middle
    :param undoes: the entry that this one undoes; ``undone_by`` is the reverse, or the entry itself if there was nothing to undo
    :param finishes: the entry that this one was to finish
    :param finished_by: the entry that did what was left of this one, by ``journal finish`` or the same command, or the entry itself if
        nothing was left
    """

    id: str
    status: EntryStatus
    user: str
    host: str
    pid: int
    process_started: str
    started: str
    plan: Plan
    ended: str = ""
    results: tuple[Json, ...] = ()
    rest: str = ""
    error: Json = None
    left: Json = None
    undoes: str = ""
    undone_by: str = ""
    finishes: str = ""
    finished_by: str = ""
    version: int = JOURNAL_VERSION

    def as_json(self, *, whole: bool = True) -> dict[str, Json]:
        """Return the entry as JSON values; for ``whole`` see ``Plan.as_json``."""
        body = {each.name: getattr(self, each.name) for each in fields(self)}
        return body | {"status": self.status.value, "plan": self.plan.as_json(whole=whole), "results": list(self.results)}

    @property
    def item_results(self) -> tuple[ItemResult, ...]:
        return tuple(ItemResult(**{**body, "status": Status(body["status"])}) for body in self.results)


@dataclass(frozen=True)
class Journal:
    folder: Path

    def open(self, plan: Plan, *, undoes: str = "", finishes: str = "") -> Entry:
        """Write an entry before its mutation starts."""
        now = datetime.now(timezone.utc)
        entry = Entry(
            id="",
            status=EntryStatus.OPEN,
            user=_user(),
            host=socket.gethostname(),
            pid=os.getpid(),
            process_started=start_time(os.getpid()) or "",
            started=time_text(to_milliseconds(now)),
            plan=plan,
            undoes=undoes,
            finishes=finishes,
        )
        try:
            with self._numbering():
                number = max((order_of(path.stem)[0] for path in self.folder.glob("*.json")), default=0) + 1
                entry = replace(entry, id=f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}-{number:06}")
                self._write(entry)
        except OSError as error:
            raise ConfigError(
                f"cannot write the journal in {self.folder}: {error.strerror}; nothing was changed",
                hint="every change is written down before it starts: make room there, or set XDG_STATE_HOME to a folder that is yours",
            ) from error
        return entry

    @contextlib.contextmanager
    def _numbering(self) -> Iterator[None]:
        """Keep other processes from opening entries, so that no two get the same number; a lock ends with its process."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def close(self, entry: Entry, status: EntryStatus, results: Sequence[ItemResult], *, error: Json = None, left: Json = None) -> Entry:
        rest = ""
        if isinstance(entry.plan.items, DerivedItems) and status in (EntryStatus.DONE, EntryStatus.PARTIAL) and error is None:
            results, rest = [result for result in results if result.status is not Status.DONE], Status.DONE.value
        bodies = tuple(result.as_json() for result in results)
        ended = time_text(to_milliseconds(datetime.now(timezone.utc)))
        closed = replace(entry, status=status, results=bodies, rest=rest, error=error, left=left, ended=ended)
        self._write(closed)
        return closed

    def mark_undone(self, entry_id: str, *, by: str) -> None:
        """Record in an entry, and in all that were to finish it, that another one undid it.

        :param by: the entry itself if there was nothing to undo
        """
        for entry in self._finishing(self.read(entry_id)):
            if not entry.undone_by:
                self._write(replace(entry, undone_by=by))

    def mark_finished(self, entry_id: str, *, by: str) -> None:
        """Record in an entry that another one finished it, and in all interrupted entries that were to finish it before.

        If it undoes an entry, that one is undone now.

        :param by: the entry itself if there was nothing left to do
        """
        for entry in self.family(entry_id):
            if entry.status is not EntryStatus.DONE:
                self._write(replace(entry, finished_by=by))
            if entry.undoes:
                self.mark_undone(entry.undoes, by=by)

    def family(self, entry_id: str) -> list[Entry]:
        """Return the entry that this one was to finish, or this one, followed by all that were to finish it or one another."""
        first = self.read(entry_id)
        while first.finishes and (self.folder / f"{first.finishes}.json").is_file():
            first = self.read(first.finishes)
        return self._finishing(first)

    def _finishing(self, first: Entry) -> list[Entry]:
        family = [first]
        for elder in family:  # grows during iteration: an entry that finishes another may itself have been finished by a third
            later = self.entries(lambda _damaged: None, mentioning=elder.id)
            family += [entry for entry in later if entry.finishes == elder.id]
        return family

    def undoing(self, entry_id: str) -> Iterator[Entry]:
        """Yield the entries that were to undo an entry, newest first."""
        return (entry for entry in self.entries(lambda _damaged: None, mentioning=entry_id) if entry.undoes == entry_id)

    def left_behind(self, entry: Entry) -> Json:
        """Return what an entry and those that finished it left behind; None if one was stopped in the middle."""
        left = entry.left
        seen = {entry.id}
        while entry.finished_by and entry.finished_by not in seen and (self.folder / f"{entry.finished_by}.json").is_file():
            entry = self.read(entry.finished_by)
            seen.add(entry.id)
            if entry.left is None:
                return None
            left = {key: {**((left or {}).get(key) or {}), **found} for key, found in entry.left.items()}
        return left

    def read(self, entry_id: str, *, cluster_id: str = "") -> Entry:
        """Return one entry; ``last`` is the newest.

        :param cluster_id: the cluster that ``last`` refers to; empty: any cluster
        :raises NotFound: when there is no such entry
        :raises ConfigError: when it, or for ``last`` a newer entry, cannot be read
        """
        if entry_id == "last":
            newest = next((entry for entry in self.entries() if not cluster_id or entry.plan.cluster_id == cluster_id), None)
            if newest is None and cluster_id and any(self.folder.glob("*.json")):
                raise NotFound(
                    f"the journal has no entries for this cluster ({cluster_id})",
                    hint="`kops journal list` shows what was changed elsewhere",
                )
            if newest is None:
                raise NotFound("the journal is empty", hint="nothing has been changed from this machine yet")
            return newest
        path = self.folder / f"{entry_id}.json"
        if not path.is_file() or "/" in entry_id:
            raise NotFound(f"no journal entry {entry_id}", hint="`kops journal list` shows them")
        return _read(path)

    def entries(self, damaged: Callable[[ConfigError], None] | None = None, *, mentioning: str = "") -> Iterator[Entry]:
        """Yield all entries, newest first, by their numbers.

        :param damaged: is called with the errors of entries that cannot be read
        :param mentioning: ASCII text that an entry must contain: others are skipped without parsing, since plans of many items take long to
            parse
        :raises ConfigError: for the first entry that cannot be read, when ``damaged`` is None
        """
        for path in sorted(self.folder.glob("*.json"), key=lambda path: order_of(path.stem), reverse=True):
            try:
                if _mentions(path, mentioning):
                    yield _read(path)
            except ConfigError as error:
                if damaged is None:
                    raise
                damaged(error)

    def _write(self, entry: Entry) -> None:
        write_whole(self.folder / f"{entry.id}.json", json_text(entry.as_json(whole=False)))


def order_of(entry_id: str) -> tuple[int, str]:
    """Return the sort key of an entry: its number, then its time; 0 for a name without one."""
    found = _NUMBERED.fullmatch(entry_id)
    return (int(found[1]) if found else 0, entry_id)


def crashed(entry: Entry) -> bool:
    """Whether an entry is still open although its process on this machine has ended."""
    if entry.status is not EntryStatus.OPEN or is_elsewhere(entry):
        return False
    return not ProcessIdentity(entry.pid, entry.process_started).running


def is_elsewhere(entry: Entry) -> bool:
    """Whether an entry was written on a machine with another host name, whose processes cannot be seen from here.

    Containers that share a host name but not their processes cannot be distinguished: a running one looks crashed from another one.
    """
    return entry.host != socket.gethostname()


def _mentions(path: Path, text: str) -> bool:
    try:
        return not text or text.encode() in path.read_bytes()
    except OSError:
        return True  # reading it reports why


def _read(path: Path) -> Entry:
    try:
        body = read_json(path)
        plan = plan_from_json(body["plan"])
        return Entry(**{**body, "status": EntryStatus(body["status"]), "plan": plan, "results": tuple(body["results"])})
    except (OSError, ValueError, LookupError, TypeError, AttributeError, UsageProblem) as broken:
        raise ConfigError(f"journal entry {path} cannot be read: {broken}", hint="move the file away if it is of no use") from broken


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
