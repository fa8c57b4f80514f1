"""Random applications with random histories, damaged at random: kops may refuse or doubt, but what it is certain of must be so.

The only failure is a class that the real store contradicts: the store of an application that ran on a broker, as its changelog held it
before the damage. ``KOPS_TEST_SEED`` names another series of cases; a case that failed names its seed.
"""

import json
import os
import random
import re
import uuid
from collections import Counter

import pytest

from kops.gateways.jars import KAFKA_VERSION
from support.generated import EMPTIED, LOST_KEYS, NOTHING, OLD_VALUES, ONE_PARTITION, SKIPPED, STARTED_LATE, batch, contradicts, held
from support.programs import Record
from support.streams import compacted_view
from support.streams_apps import run_all_to_the_end

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

SERIES = os.environ.get("KOPS_TEST_SEED", "1")
SIZE = 15
VERSIONS = (KAFKA_VERSION, "4.1.1")
FEW, MANY = 4, 134


def _numbers():
    return [*range(FEW), *(pytest.param(number, marks=pytest.mark.long) for number in range(FEW, MANY))]


@pytest.mark.parametrize("number", _numbers())
def test_kops_is_certain_only_of_what_is_so(cluster, run_kops, tmp_path, number):
    application = f"random-{uuid.uuid4().hex[:8]}"
    made = batch(f"{SERIES}-{number}", application, SIZE, VERSIONS)
    try:
        starts = _live(cluster, made, tmp_path)
        logs = {case.store: _log(cluster, case) for case in made.cases}
        before = {case.store: held(case.window, logs[case.store]) for case in made.cases}
        grades, startable, refused = _rebuilt(cluster, run_kops, made, tmp_path, logs, starts)
        wrong = []
        for case in made.cases:
            if case.store in grades:
                after = compacted_view(_log(cluster, case))
                grouped = case.file["from"].get("table") is not None and "key_by" in case.file
                found = contradicts(_claim(grades[case.store], case), before[case.store], after, case.form, grouped=grouped)
                wrong += [str(case), *(f"    {grades[case.store]}: {what}" for what in found[:3])] if found else []
        print(made.seed, made.history, made.guarantee, f"cache {made.cached}", Counter(grades.values()), "refused", refused, startable)
        assert not wrong, f"{made.seed}: {made.history}, {made.specification.as_json()['config']}\n" + "\n".join(wrong)
    finally:
        cluster.delete_all(cluster.topics(application))


def _live(cluster, made, folder):
    """Let the application live its life: parts of its input, with a clean stop after each; return where it began, unless at the start."""
    starts = {}
    cluster.create_all({one.topic: one.partitions for one in made.inputs})
    for part in range(made.parts):
        cluster.produce_all(made.arriving(part))
        ends = {(one.topic, at): high for one in made.inputs for at, (_low, high) in cluster.ends(one.topic).items()}
        if part == 0 and made.history == STARTED_LATE:
            starts = ends
            cluster.commit(made.application, ends)
            continue
        if part == made.parts - 1 and made.history == SKIPPED:
            committed = cluster.committed(made.application)
            cluster.commit(made.application, {at: min(committed.get(at, 0) + 2, end) for at, end in ends.items()})
        instances = [(made.specification, folder / f"instance-{at}") for at in range(made.instances)]
        run_all_to_the_end(cluster.servers, instances, version=made.version)
    return starts


def _log(cluster, case):
    return cluster.read(case.changelog, "read_uncommitted")


def _rebuilt(cluster, run_kops, made, folder, logs, starts):
    """Damage the changelogs, then rebuild what kops does not refuse; return the class of each store, and what was refused why."""
    stores, refused = [case.store for case in made.cases], {}
    file, plan = folder / "state.yaml", folder / "plan.json"
    random_ = random.Random(f"{made.seed}-damage")
    file.write_text(made.state_file(starts), encoding="utf-8")
    if random_.random() < 0.3:
        run_kops("state", "verify", file, "-B", cluster.servers)
    for case in made.cases:
        _damage(cluster, case, logs[case.store], random_)
    told = {case.store for case in made.cases if case.damage in (LOST_KEYS, OLD_VALUES) and random_.random() < 0.7}
    while stores:
        plan.unlink(missing_ok=True)
        chosen = [option for store in stores for option in ("--store", store)]
        chosen += [option for store in stores if store in told for option in ("--damaged", store)]
        asked = ("state", "rebuild", file, *chosen, "-B", cluster.servers, "--accept-inexact", "--wait-empty", "60s")
        outcome = run_kops(*asked, "--plan-out", plan, "-o", "json")
        if outcome.code == 0:
            break
        assert outcome.code == 5, outcome
        store = _named(outcome.err, stores)
        assert store, f"a refusal that names no store: {outcome}"
        refused[store] = outcome.err
        stores.remove(store)
    if not stores:
        return {}, False, refused
    arguments = json.loads(plan.read_text(encoding="utf-8"))["arguments"]
    done = run_kops("apply", plan, "--yes", "-B", cluster.servers)
    assert done.code == 0, done
    grades = {name: store["exactness"]["class"] for name, store in arguments["stores"].items()}
    return grades, "can be started" in done.err, list(refused)


def _named(text, stores):
    """Return the store that a refusal is about."""
    return next((store for store in stores if re.search(rf"\b{store}\b", text)), None)


def _claim(grade, case):
    """Return the class that must hold: what rests on a wrong file promises nothing."""
    letter, condition, _ = grade.partition(" if the file is right")
    return letter if case.file_is_right or not condition else "none"


def _damage(cluster, case, log, random_):
    topic, view = case.changelog, compacted_view(log)
    ends = cluster.ends(topic)
    if case.damage == EMPTIED:
        _trim(cluster, topic, {at: high for at, (_low, high) in ends.items()})
    elif case.damage == ONE_PARTITION:
        at = random_.randrange(len(ends))
        _trim(cluster, topic, {at: ends[at][1]})
    elif case.damage == LOST_KEYS:
        lost = [key for key in sorted(view) if random_.random() < 0.4]
        cluster.produce(topic, [Record(key, None, view[key].timestamp, (), view[key].partition) for key in lost])
    elif case.damage == OLD_VALUES:
        first = {}
        for record in log:
            first.setdefault((record.partition, record.key), record)
        cluster.produce(topic, [record for record in first.values() if record.value is not None and random_.random() < 0.4])
    else:
        assert case.damage == NOTHING


def _trim(cluster, topic, before):
    policy = cluster.config(topic).get("cleanup.policy", "delete")
    cluster.set_config(topic, cleanup_policy="delete")
    try:
        from support.streams_apps import wait_for

        wait_for(f"{topic} to be trimmed", lambda: cluster._trimmed(topic, before))
    finally:
        cluster.set_config(topic, cleanup_policy=policy)
