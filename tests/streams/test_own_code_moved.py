"""Applications that were moved to another number of partitions, as their own program says: of several kinds, and what is reported.

Each continues, and in the end holds what a twin does that never moved.
"""

import json
from dataclasses import dataclass

import pytest

from kops.gateways.machine.jars import KAFKA_VERSION
from support.captured import built_agent
from support.own_apps import records
from support.own_moves import COUNT, HALF, STORES, UNCACHED, captured, made, of_live, sent
from support.verified import checks, differs, summaries

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

EXACTLY_ONCE = ("processing.guarantee=exactly_once_v2",)


@dataclass(frozen=True)
class Move:
    """How an application is, and how it moves: its input grows, or it reads another one."""

    version: str
    old: int
    new: int
    instances: int
    settings: tuple[str, ...] = EXACTLY_ONCE


MOVES = (
    Move("3.9.1", 4, 2, instances=2),
    Move("3.9.1", 4, 12, instances=2, settings=()),
    Move("4.1.1", 12, 4, instances=1),
    Move("4.1.1", 4, 6, instances=2),
    Move(KAFKA_VERSION, 2, 5, instances=3),
)


SAID = {
    (True, False): "its state was carried over by state.repartition",
    (True, True): "its state was carried over by state.repartition",
    (False, False): "so the default partitioner placed it among 4, before",
    (False, True): "which the captured program does not read",
}
"""Whether this machine moved it, and whether to another topic: why the computed state is not certain."""


def move(run_kops, app, how):
    """Move it; its local state is deleted, as the plan says."""
    servers, capture = ("--confirm", app.application, "-B", app.cluster.servers), captured(run_kops, app)
    if how.new > how.old:
        done = run_kops("state", "repartition", "--app", capture, "--partitions", how.new, "--grow-inputs", *servers).ok()
    else:
        there = app.cluster.create(app.topic("fewer"), how.new)
        instead = ("--input", f"{app.topic('in')}={there}")
        done = run_kops("state", "repartition", "--app", capture, "--partitions", how.new, *instead, *servers).ok()
        app.inputs, app.settings = ("fewer",), (*app.settings, "input=fewer")
    app.forget()
    return done


@pytest.mark.parametrize("how", MOVES, ids=lambda how: f"{how.version}-{how.old}-{how.new}")
def test_it_goes_on_as_its_twin(cluster, prefix, tmp_path, run_kops, how):
    built_agent()
    given = {"partitions": how.old, "version": how.version, "settings": how.settings, "instances": how.instances}
    app, twin = (made(cluster, f"{prefix}-{name}", tmp_path / name, **given) for name in ("app", "twin"))
    done = move(run_kops, app, how)
    for store in STORES:
        assert f"{store}: of " in done.err
    assert "memory: up to " in done.err
    for each in (app, twin):
        cluster.produce(each.topic(each.inputs[0]), records(COUNT)[HALF:])
        each.run()
    for store in STORES:
        assert of_live(app, store) == of_live(twin, store), store
        assert cluster.topics(app.topic(store))[app.topic(f"{store}-changelog")] == how.new
    for topic in ("out", "trails"):
        assert sent(app, topic) == sent(twin, topic)


def test_inputs_are_kept_where_the_program_says_the_number_itself(cluster, prefix, tmp_path, run_kops):
    built_agent()
    app, twin = (
        made(cluster, f"{prefix}-{name}", tmp_path / name, settings=("partitions=4", *EXACTLY_ONCE), instances=2)
        for name in ("app", "twin")
    )
    app.settings = (UNCACHED, "partitions=6", *EXACTLY_ONCE)
    arguments = ("--app", captured(run_kops, app), "--partitions", 6, "--keep-inputs", "--confirm", app.application)
    done = run_kops("state", "repartition", *arguments, "-B", cluster.servers).ok()
    assert "trail: of " in done.err
    app.forget()
    for each in (app, twin):
        cluster.produce(each.topic("in"), records(COUNT)[HALF:])
        each.run()
    for store in ("counts", "trail"):
        assert of_live(app, store) == of_live(twin, store), store
        assert cluster.topics(app.topic(store))[app.topic(f"{store}-changelog")] == 6
    for topic in ("out", "trails"):
        assert sent(app, topic) == sent(twin, topic)


@pytest.mark.parametrize("how", [Move(KAFKA_VERSION, 4, 12, 1), Move(KAFKA_VERSION, 4, 3, 1)], ids=["grown", "another topic"])
def test_what_cannot_be_computed_after_a_move_is_never_certain(cluster, prefix, tmp_path, run_kops, run_kops_alone, how):
    """Neither here, where the journal has the move, nor on another machine, nor once no key is left to compare with."""
    built_agent()
    app, servers = made(cluster, prefix, tmp_path, partitions=how.old), ("-B", cluster.servers)
    move(run_kops, app, how)
    (topic,) = app.inputs
    capture, file = captured(run_kops, app), tmp_path / "state.yaml"
    source = {"topic": app.topic(topic), "key": "string", "value": "string"}
    stated = {"counts": {"from": source, "aggregate": {"count": True}}}
    file.write_text(json.dumps({"application": prefix, "stores": stated}), encoding="utf-8")
    cluster.produce(app.topic(topic), records(COUNT)[HALF:])
    app.run()

    def judged():
        for kops in (run_kops, run_kops_alone):
            for described in (("--app", capture), (file,)):
                found = kops("state", "verify", *described, "-o", "json", *servers)
                yield kops, described, {row["store"]: row for row in found.json}

    for kops, _, rows in judged():
        carried = {*rows} if kops is run_kops else {*rows} - {"letters"}
        assert all("warning" in checks(rows[name]).values() for name in carried), rows
        assert {rows[name]["verdict"] for name in carried - {"letters"}} == {"doubtful"}, rows
        assert all(differs(rows[name]) for name in carried - {"letters"}), rows
    for store in STORES:
        cluster.empty(app.topic(f"{store}-changelog"))
    for kops, described, rows in judged():
        if how.new < how.old and described == (file,) and kops is run_kops_alone:
            continue  # a state file does not name all that its application reads, so nothing shows the other topic
        assert {row["verdict"] for row in rows.values()} == {"doubtful"}, rows
        assert all(SAID[kops is run_kops, how.new < how.old] in summaries(row) for row in rows.values()), rows
        assert kops("state", "rebuild", *described, "--yes", *servers).code == 5
