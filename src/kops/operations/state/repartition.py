"""Moves an application to another number of partitions, with its state. Kafka Streams itself cannot: it refuses to start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kops.core.errors import Refused, UsageProblem
from kops.core.models import Committed, NewTopic, TopicPartition
from kops.core.plan import Item, ItemResult, Plan, Severity, Status
from kops.core.statefile import StateFile
from kops.core.topics.names import no_topics
from kops.operations.offsets.items import committed_json, move_item, partition_of
from kops.operations.protocol.journal import EntryStatus, Journal, crashed
from kops.operations.protocol.journal_actions import is_unfinished
from kops.operations.services import Services
from kops.operations.state.engine import start_engine
from kops.operations.state.losses import losses_text
from kops.operations.state.recreation import refuse_unless_recreatable
from kops.operations.state.repartition_inputs import Choice, plan_inputs
from kops.operations.state.repartition_stage import movables, stage_changelogs
from kops.operations.state.snapshot_topics import OwnTopics, StandingStill, own_topics, standing_still
from kops.operations.state.switch import GROW, Switch, guard_now, local_state_warning
from kops.operations.state.switch_offsets import emissions_of
from kops.operations.state.switch_topics import TopicChange, changes_json, changes_of_json, topic_ids

_PRINT = ("records", "high", "low")
"""What two equal contents have in common: the number of records, and the sum of their hashes."""


class Repartition(Switch):
    """Makes internal topics anew with another number of partitions, and writes the state into them."""

    name = "state.repartition"

    def check(self, services: Services, plan: Plan) -> None:
        """Refuse also when what is kept of the old changelogs is not whole: they are about to be deleted."""
        super().check(services, plan)
        session = start_engine(services, plan.arguments["master"]).session
        for store in plan.arguments["stores"].values():
            if store["prior_contents"]:
                wanted = {number: [found[part] for part in _PRINT] for number, found in store["prior_contents"].items()}
                if _kept(session, store) != wanted:
                    raise Refused(f"what is kept of {store['changelog']} is not whole: {store['prior_stage']}", hint="plan it again")

    def offsets_back(self, services: Services, plan: Plan, topics: Sequence[TopicChange]) -> dict[str, Any]:
        """Return the commits of before; a repartition topic is recreated once more, and begins at 0."""
        application = plan.arguments["application"]
        now = services.kafka.groups.committed([application])[application]
        made = {change.name: change.after for change in topics if change.after}
        back: dict[str, Any] = {}
        for target, found in plan.arguments["committed_before"].items():
            partition = partition_of(target)
            if partition.topic not in made and (partition not in now or now[partition].offset != found["offset"]):
                back[target] = found
        for target in plan.arguments["commit"]:
            if target not in plan.arguments["committed_before"] and partition_of(target).topic not in made:
                back[target] = None
        for name, topic in made.items():
            if name in plan.arguments["repartitions"]:
                for number in range(topic.partitions or 0):
                    known = plan.arguments["committed_before"].get(f"{name}:{number}") or {}
                    back[f"{name}:{number}"] = committed_json(Committed(0, known.get("metadata") or ""))
        return back

    def invert(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> Plan:
        """Return the plan that brings the changelogs of before back, and the offsets that go with them."""
        undo = super().invert(services, plan, results)
        application = plan.arguments["application"]
        lost = (
            f"what {application} has processed since is taken out of its state; from the offsets of before it is processed, and sent, again"
        )
        return replace(undo, warnings=(lost, *undo.warnings))

    def messages(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[str, ...]:
        """Say what has to be done before the application starts, and how to be rid of what is kept."""
        if any(result.status not in (Status.DONE, Status.UNCHANGED) for result in results):
            return super().messages(services, plan, results)
        application, file = plan.arguments["application"], plan.arguments["state_file"]
        return (
            *local_state_warning(application),
            f"the state from before is kept; when {application} runs well: kops state repartition {file} --confirm-done",
        )


REPARTITION = Repartition()


def plan_repartition(services: Services, state_file: StateFile, partitions: int, choice: Choice, *, master: str | None = None) -> Plan:
    """Return the plan that moves the stores of a state file to another number of partitions.

    :param choice: what becomes of the input topics
    :raises Refused: when the application runs, has unprocessed records in a repartition topic, or keys are where no default
        partitioner puts them
    """
    for store in state_file.stores:
        if store.reuses_source:
            raise Refused(
                f"the changelog of store {store.name} is its input topic {store.changelog} itself",
                hint="produce the topic again with as many partitions as are needed, and reset the application",
            )
    unfinished = _unfinished(services, state_file.application, partitions)
    if unfinished is not None:
        return unfinished
    engine = start_engine(services, master)
    topics = own_topics(services, state_file.application, state_file)
    isolation = "read_committed" if state_file.exactly_once else "read_uncommitted"
    still = standing_still(services, topics, isolation=isolation)
    inputs = plan_inputs(services, state_file, partitions, choice, still.committed)
    changes, repartitions = _changes(services, state_file, topics, partitions)
    if not changes:
        raise UsageProblem(f"the internal topics of {state_file.application} have {partitions} partitions already", hint="nothing to do")
    refuse_unless_recreatable(services, changes)
    moved = stage_changelogs(engine, state_file, changes, still.bounds, partitions)
    commits = dict(inputs.commits)
    for name in repartitions:
        begin = Committed(0, emissions_of(found for at, found in still.committed.items() if at.topic == name))
        commits |= {TopicPartition(name, number): begin for number in range(partitions)}
    moves = [
        move_item(at, None if at.topic in repartitions else still.committed.get(at), found, _why(at, repartitions))
        for at, found in sorted(commits.items())
    ]
    moved_targets = {item.target for item in moves if item.changes}
    grown = [
        Item(f"{GROW} {name}", GROW, len(services.kafka.topics.existing([name])[name].partitions), total, "cannot be undone")
        for name, total in inputs.grow.items()
    ]
    application = state_file.application
    plan = Plan(
        operation=REPARTITION.name,
        summary=f"move {application} to {partitions} partitions, with the state of {', '.join(found.store.name for found in moved)}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(
            *(
                change.item(
                    f"its records are kept, and written to {partitions} partitions"
                    if change.name not in repartitions
                    else "what is in it was processed"
                )
                for change in changes
            ),
            *(item for found in moved for item in found.items()),
            *grown,
            *moves,
        ),
        severity=Severity.SEVERE,
        confirm=application,
        arguments={
            "application": application,
            "state_file": state_file.path,
            "exactly_once": state_file.exactly_once,
            "master": engine.master,
            "topics": changes_json(changes),
            "repartitions": sorted(repartitions),
            "stores": {found.store.name: found.arguments for found in moved},
            "watched": sorted({at.topic for at in (*commits, *still.committed)}),
            "committed_before": {str(at): committed_json(found) for at, found in sorted(still.committed.items())},
            "commit": {str(at): committed_json(found) for at, found in commits.items() if str(at) in moved_targets},
            "prior": {},
            GROW: dict(inputs.grow),
        },
        warnings=(*_losses(topics, still), *inputs.warnings, *_left_alone(topics, changes, partitions), *local_state_warning(application)),
        notes=tuple(f"{found.store.name}: {found.done.keys:,} keys" for found in moved),
    )
    return replace(plan, guard=guard_now(services, plan))


def _losses(topics: OwnTopics, still: StandingStill) -> list[str]:
    """Say what cannot move: keys that the changelogs have lost, of which nothing tells any more once these are recreated."""
    said = []
    for topic in topics.changelogs.values():
        starts = {at.partition: bound.log_start_offset for at, bound in still.bounds.items() if at.topic == topic.name}
        policy = topics.settings[topic.name].get("cleanup.policy")
        said.append(losses_text(topic.name, starts, (policy.value or "") if policy else "delete"))
    return [f"{text}, and do not move; `kops state verify` compares the state with its input" for text in said if text]


def _unfinished(services: Services, application: str, partitions: int) -> Plan | None:
    """Return the plan for what is left of an earlier move to that many partitions: the old changelogs may be gone, but are staged."""
    cluster_id = services.kafka.cluster().cluster_id
    for entry in Journal(services.directories.state / "journal").entries(lambda _: None, mentioning=REPARTITION.name):
        plan = entry.plan
        if (plan.operation, plan.cluster_id) != (REPARTITION.name, cluster_id) or plan.arguments["application"] != application:
            continue
        if not is_unfinished(entry) or (entry.status is EntryStatus.OPEN and not crashed(entry)):
            return None  # the newest counts
        sizes = {change.after.partitions or 0 for change in changes_of_json(plan.arguments["topics"]) if change.after}
        if sizes != {partitions}:
            hint = f"`kops journal finish {entry.id}` does what is left of it, `kops undo {entry.id}` takes it back"
            raise Refused(f"{entry.id} moved {application} to {max(sizes, default=0)} partitions, and was not finished", hint=hint)
        left = REPARTITION.resume(services, plan)
        return replace(left, notes=(f"this does what is left of {entry.id}", *left.notes))
    return None


def _kept(session: Any, store: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return what is kept of a changelog, by partition: number of records, and both halves of the sum of their hashes."""
    from kops.spark.reading.snapshot import held, read_snapshot
    from kops.spark.staging.difference import to_append
    from kops.spark.staging.stage import contents_of, read_stage

    path = store["prior_stage"]
    if store["with_headers"]:
        return {str(number): found.fingerprint for number, found in held(read_snapshot(session, path)).items()}
    return {str(number): found.fingerprint for number, found in contents_of(to_append(read_stage(session, path))).items()}


def _changes(services: Services, state_file: StateFile, topics: OwnTopics, partitions: int) -> tuple[list[TopicChange], set[str]]:
    """Return the internal topics that are recreated, and which of them are repartition topics."""
    there = {topic.name: topic for topic in (*topics.changelogs.values(), *topics.repartitions)}
    wanted = [store.changelog for store in movables(state_file)]
    repartitions = [store.repartition_topic for store in state_file.stores if store.repartition_topic]
    for name in (*wanted, *repartitions):
        if name not in there:
            raise Refused(no_topics([name]), hint="Kafka Streams makes it when the application starts; correct the state file")
    old = [there[name] for name in dict.fromkeys((*wanted, *repartitions)) if there[name].partitions != partitions]
    changes = [TopicChange(topic, replace(topic, partitions=partitions)) for topic in old]
    ids = topic_ids(services, changes)
    return [replace(change, topic_id=ids[change.name]) for change in changes], {topic.name for topic in old if topic.name in repartitions}


def _left_alone(topics: OwnTopics, changes: Sequence[TopicChange], partitions: int) -> list[str]:
    touched = {change.name for change in changes}
    there: list[NewTopic] = [*topics.changelogs.values(), *topics.repartitions]
    left = [topic for topic in there if topic.name not in touched and topic.partitions != partitions]
    return [
        f"{topic.name} is of no store of the state file and keeps its {topic.partitions} partitions: right only in another sub-topology"
        for topic in left
    ]


def _why(partition: TopicPartition, repartitions: set[str]) -> str:
    return "the topic is recreated" if partition.topic in repartitions else "where it begins"
