"""Applications whose lives are over, and what kops says of their stores: contradicted, or not."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from contextlib import contextmanager

from kops.core.streams.verdict import WORDS
from support.generated import DAMAGES, NOTHING, STARTED_LATE, Case, Rounds
from support.generated_life import damage, logs, partitions_of, put_back, start_again
from support.generated_truth import Claim, contradicts, held
from support.isolation import XDG
from support.streams import java_command
from support.streams_apps import runner_arguments
from support.verified import differs

CAN_BE_STARTED = "can be started"
EQUAL, DIFFERENT, REFUSED, UNCLEAR = 0, 1, 5, 7


class Tried:
    """What was tried on the applications of a batch, and what was contradicted."""

    def __init__(self, cluster, run_kops, folder, monkeypatch):
        self.cluster, self.run_kops, self.folder, self.monkeypatch = cluster, run_kops, folder, monkeypatch
        self.cases, self.claims, self.seconds = 0, Counter(), Counter()
        self.said, self.wrong = [], []

    @contextmanager
    def timed(self, what):
        began = time.monotonic()
        yield
        self.seconds[what] += time.monotonic() - began

    @contextmanager
    def around(self, variables):
        """Give kops, and what it starts, some further variables."""
        with self.monkeypatch.context() as patched:
            for name, value in (variables or {}).items():
                patched.setenv(name, value)
            yield

    def home(self, name):
        """Give kops a home, with a journal of its own."""
        for variable, folder in XDG.items():
            self.monkeypatch.setenv(variable, str(self.folder / name / folder))

    def kops(self, verb, *arguments):
        with self.timed(verb):
            return self.run_kops("state", verb, *arguments, "-B", self.cluster.servers)

    def __str__(self):
        seconds = ", ".join(f"{what} {spent:.0f} s" for what, spent in self.seconds.items())
        return "\n".join([f"{self.cases} cases in {seconds}: {dict(sorted(self.claims.items()))}", *self.said])


class Examined:
    """An application whose life is over."""

    def __init__(self, tried, life, made, starts):
        self.tried, self.cluster, self.life, self.made, self.starts = tried, tried.cluster, life, made, starts
        self.first = logs(self.cluster, life)
        self.truth = {filled.store: held(filled.window, self.first[filled.store]) for filled in life.made.stores}
        self.partitions = partitions_of(self.cluster, life)
        self.file = tried.folder / f"{life.application}.yaml"
        self.asked = (self.file,)

    def try_all(self, times):
        rounds = Rounds(self.made.seed, self.life, self.made.version)
        for number in range(times):
            random_ = random.Random(f"{self.made.seed}-{self.life.application[-1]}-{number}-asked")
            if number == 0 or random_.random() < 0.7:  # else the journal knows what kops wrote the last time
                self.tried.home(f"{self.life.application}-{number}")
            self._try(rounds.cases(number), random_, number)
        self.tried.cases += rounds.count

    def _try(self, cases, random_, number):
        files = {filled.store: filled.file for filled in self.life.made.stores} | {case.store: case.file for case in cases}
        self.file.write_text(self.life.state_file(files, self.starts), encoding="utf-8")
        with self.tried.timed("damage"):
            damage(self.cluster, cases, self.first, self.partitions, f"{self.made.seed}-{self.life.application[-1]}-{number}-damage")
            damaged = logs(self.cluster, self.life)
        self._verify([case for case in cases if case.verifies], damaged)
        rebuilt = [case for case in cases if not case.verifies]
        at = random_.choice((0, 0, 0, 1, 2)) if not self.life.is_light else 0
        for some in (rebuilt[:at], rebuilt[at:]):
            self._rebuild(some, number)
        with self.tried.timed("damage"):
            put_back(self.cluster, [case.filled for case in cases], self.truth, logs(self.cluster, self.life))

    def _options(self, cases):
        for case in cases:
            yield from ("--store", case.store)
            if case.damaged:
                yield from ("--damaged", case.damaged.format(partition=case.partition % self.partitions[case.store]))

    def _asked(self, verb, left, *options, plan=None):
        """Ask kops about stores, again without those that it refuses; these are taken out."""
        while left:
            if plan:
                plan.unlink(missing_ok=True)
            saved = ("--plan-out", plan) if plan else ()
            outcome = self.tried.kops(verb, *self.asked, *self._options(left), *options, *saved, "-o", "json")
            if outcome.code != REFUSED:
                assert outcome.code == 0 or (verb == "verify" and outcome.code in (DIFFERENT, UNCLEAR)), outcome
                return outcome
            (error,) = json.loads(outcome.err.splitlines()[-1])["errors"]
            refused = next((case for case in left if re.search(rf"\b{case.store}\b", error["message"])), None)
            assert refused, f"a refusal that names no store: {outcome}"
            self.tried.said.append(error["message"])
            self.tried.claims["refused"] += 1
            left.remove(refused)
        return None

    def _verify(self, cases, damaged):
        """Compare, and see that keys that are called proven are, that what is equal is so, and that what differs does."""
        left = list(cases)
        outcome = self._asked("verify", left)
        if not left:
            return
        rows = {row["store"]: row for row in outcome.json}
        differing = {name for name, row in rows.items() if differs(row)}
        assert outcome.code != EQUAL or not differing, outcome
        for case in left:
            row, claim, log = rows[case.store], Claim.of(rows[case.store], file_is_right=case.file_is_right), damaged[case.store]
            said = f"{'differs' if case.store in differing else 'equal'}, {row['verdict']}"
            self.tried.claims[said] += 1
            if case.store not in differing:
                self._note(case, said, self._contradicts(claim, case, log))
                continue
            proven = Claim(row["proven"], is_whole=False, is_exact=claim.is_exact)
            self._note(case, f"{said}, {row['proven']} proven", self._contradicts(proven, case, log))
            if claim.is_whole and not self._contradicts(claim, case, log):
                self._note(case, said, [f"nothing differs: {row}"])

    def _rebuild(self, cases, number):
        """Rebuild what kops does not refuse, and see that what it promises is so."""
        plan = self.tried.folder / f"{self.life.application}-{number}.json"
        left = list(cases)
        self._asked("rebuild", left, "--accept-doubtful", "--wait-empty", "60s", plan=plan)
        if not left:
            return
        with self.tried.timed("read"):
            before = logs(self.cluster, self.life)
        with self.tried.timed("apply"):
            done = self.tried.run_kops("apply", plan, "--yes", "-B", self.cluster.servers)
        assert done.code == 0, done
        with self.tried.timed("read"):
            now = logs(self.cluster, self.life)
        for name, store in json.loads(plan.read_text(encoding="utf-8"))["arguments"]["stores"].items():
            case = next(case for case in left if case.store == name)
            self.tried.claims[store["verdict"]] += 1
            said = ", ".join(f"{store[word]} {word}" for word in WORDS)
            claim = Claim.of(store, file_is_right=case.file_is_right)
            self._note(case, f"{said}, {store['witnesses']}", self._contradicts(claim, case, now[name], before[name]))
        if self.life.is_light:
            self.tried.said += [line for line in done.err.splitlines() if line.startswith("- ")]
        if CAN_BE_STARTED in done.err:
            self.tried.claims[CAN_BE_STARTED] += 1
            with self.tried.timed("starts"):
                self._note(CAN_BE_STARTED, "", start_again(self.cluster, self.made, self.life, self.tried.folder))
                now = logs(self.cluster, self.life)
            for filled in self.life.made.stores:
                found = contradicts(
                    Claim(is_exact=False), self.truth[filled.store], now[filled.store], filled.form, grouped=filled.is_grouped
                )
                self._note(filled.store, CAN_BE_STARTED, found)

    def _contradicts(self, claim, case, log, survived=None):
        return contradicts(claim, self.truth[case.store], log, case.filled.form, grouped=case.filled.is_grouped, survived=survived)

    def _note(self, case, said, found):
        if found:
            self.tried.wrong += [f"{self.life.application[-1]}: {self.life}", f"  {case}", *(f"    {said}: {what}" for what in found[:3])]


class ByProgram(Examined):
    """An application of which kops has a capture, and no state file."""

    def __init__(self, tried, life, made, starts):
        super().__init__(tried, life, made, starts)
        self.capture = tried.folder / f"{life.application}.capture.json"
        self.asked = ("--app", self.capture)
        starting = runner_arguments(self.cluster.servers, life.made.specification, tried.folder / "captured")
        with tried.timed("capture"):
            command = (*java_command("StreamsRunner", made.version), *starting)
            with tried.around(made.around):
                tried.run_kops("streams", "capture", "--out", self.capture, "--", *command).ok()

    def try_all(self, times):
        cases = self._cases(NOTHING)
        self.tried.cases += len(cases) * (1 + times)
        with self.tried.around(self.made.around):
            self._verify(cases, self.first)
        for number in range(times):
            random_ = random.Random(f"{self.made.seed}-{self.life.application[-1]}-{number}-by-program")
            self.tried.home(f"{self.life.application}-{number}")
            cases = self._cases(random_.choice(DAMAGES[2:]), random_.randrange(6))
            with self.tried.timed("damage"):
                damage(self.cluster, cases, self.first, self.partitions, f"{self.made.seed}-{self.life.application[-1]}-{number}-damage")
            with self.tried.around(self.made.around if random_.random() < 0.6 else None):
                self._rebuild([case for case in cases if not case.filled.is_versioned], number)
            with self.tried.timed("damage"):
                put_back(self.cluster, [case.filled for case in cases], self.truth, logs(self.cluster, self.life))

    def _cases(self, damage, partition=0):
        is_told = self.life.is_told and self.life.history != STARTED_LATE
        stores = [filled for filled in self.life.made.stores if not filled.is_versioned]
        return [Case(filled, {}, is_told, damage, verifies=damage == NOTHING, partition=partition) for filled in stores]
