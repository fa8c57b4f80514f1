"""Plans for ``rebuild --into``: the state of an application computed for another one, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kops.core.errors import Refused, UsageProblem
from kops.core.models import Committed, TopicPartition
from kops.core.plan import Plan
from kops.core.statefile import StateFile
from kops.core.statefile.models import VERSIONED
from kops.core.streams.local_state import delete_local_state
from kops.operations.engine.spark import Engine, drop_stage, start_engine
from kops.operations.offsets.items import move_item, offset_of
from kops.operations.services import Services
from kops.operations.state.arguments import StateArguments
from kops.operations.state.change import INTO
from kops.operations.state.changelog_writes import refuse_time_zero
from kops.operations.state.computation import ComputeOptions, compute_all
from kops.operations.state.compute import Computed, job_of
from kops.operations.state.guard import guarded
from kops.operations.state.input_offsets import COMMITTED, InputOffsets, refuse_alive
from kops.operations.state.internal_topics import TopicChange
from kops.operations.state.into_topics import missing_topics, renamed, with_topics
from kops.operations.state.judgement import question_of
from kops.operations.state.rebuild import append_items, store_write
from kops.operations.state.snapshot_manifest import own_name
from kops.operations.state.snapshot_topics import CHANGELOG, REPARTITION
from kops.operations.topics.plan import prepare_creation


def plan_into(
    services: Services, state_file: StateFile, into: str, options: ComputeOptions, *, offsets_of: str = ""
) -> Plan[StateArguments]:
    """Return the plan that gives another application the stores of a state file, and the offsets they belong to.

    :param into: the other ``application.id``; it must not run
    :param offsets_of: the application whose committed offsets are the cut; the state file's when empty. It may run
    :raises Refused: when a store must not be computed, or the other application runs
    """
    source = replace(state_file, application=offsets_of or state_file.application)
    if source.application == into and options.at == COMMITTED:
        raise UsageProblem(
            f"{into} is the application that {state_file.path} names",
            hint="leave --into out, or say --offsets-of the application to follow",
        )
    named = renamed(state_file, into)
    _refuse_running(services, into)
    engine = start_engine(services, options.master)
    creation = prepare_creation(services, missing_topics(services, named, state_file))
    planned = with_topics(services, creation.topics)
    unproven = replace(options, has_witnesses=False)  # the changelogs of the other application hold nothing, or another state
    _, cut, computed = compute_all(planned, replace(named, application=source.application), engine, unproven, must_be_empty=False)
    computed = [_writable(engine, named, found, cut, skip_undecodable=options.skip_undecodable) for found in computed]
    for found in computed:
        earliest = [content.earliest for content in found.contents.values() if content.records]
        refuse_time_zero(services, found.facts.store.changelog, earliest, exactly_once=state_file.exactly_once)
    prior = services.kafka.groups.committed([into])[into]
    commits = _commits(services, planned, cut, named, (source.application, into))
    changes = [TopicChange(None, topic) for topic in creation.topics]
    moves = [
        move_item(at_, prior.get(at_), found, f"where {source.application} is" if not cut.is_new else "") for at_, found in commits.items()
    ]
    commit = {at: found for at, found in commits.items() if offset_of(prior.get(at)) != found.offset}
    arguments = StateArguments(
        application=into,
        offsets_of=source.application,
        state_file=state_file.path,
        exactly_once=state_file.exactly_once,
        master=engine.master,
        topics=tuple(changes),
        stores={found.facts.store.name: store_write(found) for found in computed},
        commit=commit,
        prior={at: prior.get(at) for at in commit},
        question=question_of(computed),
        facts={"archives": cut.archives_json},
    )
    written = [item for found in computed for item in append_items(found)]
    plan = Plan(
        operation=INTO,
        summary=_summary(source.application, into, computed),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(*(change.item("it does not exist") for change in changes), *written, *moves),
        arguments=arguments,
        warnings=(*cut.notes, *_running(services, source.application), *((delete_local_state(into),) if changes and prior else ())),
        notes=(*cut.origins, *(note for found in computed for note in (found.summary, *found.warnings))),
    )
    return guarded(services, plan, {partition.topic for partition in commits})


def _writable(engine: Engine, named: StateFile, found: Computed, cut: InputOffsets, *, skip_undecodable: bool) -> Computed:
    """Return a store with the records that are written: a versioned store is compared by version, and each version is a record."""
    if found.facts.store.type != VERSIONED or not found.differing:
        return found
    if not found.changelog_is_empty:
        raise Refused(
            f"{found.facts.store.changelog} is a versioned store's and differs in {found.differing:,} versions, which would stay",
            hint=f"delete it first: kops topics delete {found.facts.store.changelog}",
        )
    from kops.spark.driver.failures import explained
    from kops.spark.stores.versioned import stage_versions

    drop_stage(found.stage)
    with explained(f"compute {found.facts.store.name}"):
        staged = stage_versions(engine.kafka(), job_of(named, found.facts, cut, skip_undecodable=skip_undecodable), found.stage)
    return replace(found, counts=replace(found.counts, staged=staged))


def _refuse_running(services: Services, application: str) -> None:
    found = services.kafka.groups.describe_or_errors([application])[application]
    refuse_alive(None if isinstance(found, Exception) else found)


def _running(services: Services, application: str) -> tuple[str, ...]:
    found = services.kafka.groups.describe_or_errors([application])[application]
    if isinstance(found, Exception) or found.state == "EMPTY":
        return ()
    return (f"{application} is running: this is its state at the offsets above; to switch, stop it and run the command again",)


def _commits(
    services: Services, planned: Services, cut: InputOffsets, named: StateFile, names: tuple[str, str]
) -> dict[TopicPartition, Committed]:
    """Return what to commit for the new application: the input offsets that the state reflects, and the ends of its own repartition topics.

    :param names: of the old and the new application
    """
    old, new = names
    if cut.is_new:
        commits = {partition: Committed(offset, "") for partition, offset in cut.offsets.items()}
    else:
        own = {name for name in services.kafka.topics.names() if name.startswith(f"{old}-") and name.endswith((CHANGELOG, REPARTITION))}
        commits = {partition: found for partition, found in cut.committed.items() if partition.topic not in own}
        commits |= {partition: Committed(offset, "") for partition, offset in cut.offsets.items() if partition not in commits}
    topics = planned.kafka.topics.existing(store.repartition_topic for store in named.stores if store.repartition_topic)
    partitions = [TopicPartition(name, number) for name, topic in topics.items() for number in range(len(topic.partitions))]
    for partition, bound in planned.kafka.offsets.bounds(partitions).items():
        theirs = cut.committed.get(TopicPartition(own_name(partition.topic, new, old), partition.partition))
        commits[partition] = Committed(bound.log_end_offset, (theirs.metadata or "") if theirs and not cut.is_new else "")
    if not commits:
        raise Refused(f"{old} has committed nothing to continue from", hint="--at end computes up to the end of the input")
    return dict(sorted(commits.items()))


def _summary(old: str, new: str, computed: Sequence[Computed]) -> str:
    records = sum(content.records for found in computed if found.must_write for content in found.contents.values())
    stores = ", ".join(f"{found.facts.store.name} {found.counts.keys:,} keys" for found in computed)
    return f"give {new} the state that {old} has ({stores}): append {records:,} records"
