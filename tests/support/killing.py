"""kops killed at a step, then `undo`, `journal finish`, or the same command: the end is as without the kill, or a refusal is true."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from support import killed
from support.kill_cases import Case, Made, Parts

UNDO, FINISH, AGAIN = FOLLOW_UPS = ("undo", "journal finish", "the same command")


def combinations(cases: Iterable[Case], few: Collection[tuple[str, str, str]]) -> list[Any]:
    """Return the parameters of a campaign.

    :param few: operations with their variant, steps and follow-ups that are not left to `make test-long`
    """
    return [
        pytest.param(
            case,
            step,
            then,
            marks=() if (f"{case.operation}{case.variant}", step, then) in few else pytest.mark.long,
            id=f"{case.operation}{case.variant}, {step}, {then}",
        )
        for case in cases
        for step in killed.STEPS
        for then in FOLLOW_UPS
    ]


def undoable(cases: Iterable[Case]) -> list[Case]:
    return [case for case in cases if case.can_be_undone]


class Killing:
    """One kill, and what is done then.

    :param run: runs kops in this process: returns its outcome
    :param options: of every command: the connection
    """

    def __init__(self, case: Case, parts: Parts, run, options) -> None:
        self.made: Made = case.prepare(parts)
        self.case, self.run, self.options = case, run, options
        self.answers = ("--yes", *(word for name in self.made.confirm for word in ("--confirm", name)))
        self.look = self.made.look
        assert self.look() == case.before
        self.earlier = {row["id"] for row in self.entries()}

    def command(self) -> list[object]:
        return [*self.made.command, *(self.answers if self.made.asks else ())]

    def kops(self, *arguments):
        return self.run(*arguments, *self.options)

    def entries(self):
        return self.kops("journal", "list", "-o", "json").ok().json

    def new_entry(self):
        """Return the id of the newest entry of the operation that was not there before; None if there is none."""
        new = [row for row in self.entries() if row["operation"] == self.case.operation and row["id"] not in self.earlier]
        return new[0]["id"] if new else None

    def kill(self, step, *command):
        killed.run(step, *command, *self.options)
        return self.look()

    def of_the_command(self, step, then):
        """Kill the command itself."""
        case = self.case
        found = self.kill(step, *self.command())
        entry = self.new_entry()
        if step == killed.BEFORE_ENTRY:
            assert (entry, found) == (None, case.before)
            return
        assert entry is not None
        if then == UNDO:
            self.undo(entry, found)
        elif then == FINISH:
            self.finish(entry, found, case.after, can=case.finishes)
        else:
            self.again(entry, found)

    def of_its_undo(self, step, then):
        """Kill the undo of the command."""
        case = self.case
        self.kops(*self.command()).ok()
        assert self.look() == case.after
        entry = self.new_entry()
        found = self.kill(step, "undo", entry, *self.answers)
        undo = next((row for row in self.entries() if row["undoes"] == entry), None)
        if undo is None:
            assert (step, found) == (killed.BEFORE_ENTRY, case.after)
            return
        if then == UNDO:  # of the undo
            done = self.kops("undo", undo["id"], *self.answers)
            self.ended(done, undo["id"], found, case.after, refused=found == case.after or case.undone != case.before)
        elif then == FINISH:
            self.finish(undo["id"], found, case.undone, can=True)
        else:
            self.ended(self.kops("undo", entry, *self.answers), undo["id"], found, case.undone, refused=found == case.undone)

    def undo(self, entry, found):
        done = self.kops("undo", entry, *self.answers)
        nothing = not self.case.can_be_undone or found == self.case.before
        whole = self.look() == self.case.before  # what an undo cannot bring back may still be there
        self.ended(done, entry, found, found if nothing else self.case.before if whole else self.case.undone, refused=nothing)

    def finish(self, entry, found, wanted, *, can):
        done = self.kops("journal", "finish", entry, *self.answers)
        self.ended(done, entry, found, wanted, refused=not can or found == wanted)

    def again(self, entry, found):
        done = self.kops(*self.command())
        if self.case.repeats:
            assert done.code == 0
            assert self.look() != found
        else:
            self.ended(done, entry, found, self.case.after, refused=found == self.case.after or self.case.refers)

    def ended(self, done, entry, found, wanted, *, refused):
        """See that it came to what was wanted and the entry is closed, or that it was refused and nothing was changed.

        :param refused: whether it may refuse, since there is nothing to do or it cannot be done
        """
        now = self.look()
        if done.code == 5:
            assert refused, done.err
            assert now == found, "a refusal changes nothing"
            return
        done.ok()
        assert now == wanted
        assert entry not in [row["id"] for row in self.kops("journal", "list", "--unfinished", "-o", "json").ok().json], self.entries()
