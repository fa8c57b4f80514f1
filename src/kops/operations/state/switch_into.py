"""``rebuild --into``: the state of an application computed for another one, side by side, and then the switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kops.core.errors import Refused, UsageProblem
from kops.core.models import Committed, TopicPartition
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.core.statefile import StateFile
from kops.core.statefile.models import VERSIONED
from kops.operations.offsets.items import committed_json, move_item
from kops.operations.services import Services
from kops.operations.state.compute import Computed, job_of
from kops.operations.state.cut import COMMITTED, Cut, refuse_alive
from kops.operations.state.engine import Engine, drop_stage, start_engine
from kops.operations.state.how import How
from kops.operations.state.plans import compute_all
from kops.operations.state.snapshot_manifest import own_name
from kops.operations.state.snapshot_topics import CHANGELOG, REPARTITION
from kops.operations.state.switch import GROW, Switch, guard_now, local_state_warning
from kops.operations.state.switch_names import missing_topics, renamed
from kops.operations.state.switch_planned import with_topics
from kops.operations.state.switch_refusals import refuse_time_zero
from kops.operations.state.switch_topics import TopicChange, changes_json
from kops.operations.state.witnesses import question_of
from kops.operations.topics.plan import prepare_creation


class Into(Switch):
    """Gives another application a state of its own."""

    name = "state.into"

    def messages(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[str, ...]:
        """Spell the switch out."""
        old, new = plan.arguments["offsets_of"], plan.arguments["application"]
        if any(result.status is not Status.DONE for result in results) or old == new:
            return super().messages(services, plan, results)
        return (
            f"{new} can be started beside {old}, with a separate output topic: both process new input and send their results",
            f"to compare them: kops state diff {plan.arguments['state_file']} --against {new}",
            f"to switch: stop {old} (and {new}), run this same command again, start {new}; it continues exactly where {old} stopped",
            f"{old} keeps its topics and offsets: `kops groups delete` and `kops topics delete` once it is no longer needed",
        )


INTO = Into()


def plan_into(services: Services, state_file: StateFile, into: str, how: How, *, offsets_of: str = "") -> Plan:
    """Return the plan that gives another application the stores of a state file, and the offsets they belong to.

    :param into: the other ``application.id``; it must not run
    :param offsets_of: whose committed offsets are the cut; the state file's application when empty. It may run
    :raises Refused: when a store must not be computed, or the other application runs
    """
    source = replace(state_file, application=offsets_of or state_file.application)
    if source.application == into and how.at == COMMITTED:
        raise UsageProblem(
            f"{into} is the application that {state_file.path} names",
            hint="leave --into out, or say --offsets-of the application to follow",
        )
    named = renamed(state_file, into)
    _refuse_running(services, into)
    engine = start_engine(services, how.master)
    creation = prepare_creation(services, missing_topics(services, named, state_file))
    planned = with_topics(services, creation.topics)
    unproven = replace(how, has_witnesses=False)  # the changelogs of the other application hold nothing, or another state
    _, cut, computed = compute_all(planned, replace(named, application=source.application), engine, unproven, must_be_empty=False)
    computed = [_writable(engine, named, found, cut, skip_undecodable=how.skip_undecodable) for found in computed]
    for found in computed:
        refuse_time_zero(services, found.facts.store.changelog, found.contents.values(), exactly_once=state_file.exactly_once)
    prior = services.kafka.groups.committed([into])[into]
    commits = _commits(services, planned, cut, named, (source.application, into))
    changes = [TopicChange(None, topic) for topic in creation.topics]
    moves = [
        move_item(at_, prior.get(at_), found, f"where {source.application} is" if not cut.is_new else "") for at_, found in commits.items()
    ]
    moved = {item.target for item in moves if item.changes}
    plan = Plan(
        operation=INTO.name,
        summary=_summary(source.application, into, computed),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(*(change.item("it does not exist") for change in changes), *(item for found in computed for item in _items(found)), *moves),
        arguments={
            "application": into,
            "offsets_of": source.application,
            "state_file": state_file.path,
            "exactly_once": state_file.exactly_once,
            "master": engine.master,
            "archives": cut.archives_json,
            "topics": changes_json(changes),
            "stores": {found.facts.store.name: _arguments(found) for found in computed},
            "watched": sorted({partition.topic for partition in commits}),
            "commit": {str(p): committed_json(found) for p, found in commits.items() if str(p) in moved},
            "prior": {str(p): committed_json(prior.get(p)) for p in commits if str(p) in moved},
            GROW: {},
            "question": question_of(computed),
        },
        warnings=(*cut.notes, *_running(services, source.application), *(local_state_warning(into) if changes and prior else ())),
        notes=(*cut.origins, *(note for found in computed for note in (found.summary, *found.warnings))),
    )
    return replace(plan, guard=guard_now(services, plan))


def _writable(engine: Engine, named: StateFile, found: Computed, cut: Cut, *, skip_undecodable: bool) -> Computed:
    """Return a store with the records that are written: a versioned store is compared by its versions, which are records each."""
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


def _commits(services: Services, planned: Services, cut: Cut, named: StateFile, names: tuple[str, str]) -> dict[TopicPartition, Committed]:
    """Return what to commit for the new application: its input where the state is of, its own repartition topics at their ends.

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


def _arguments(found: Computed) -> dict[str, Any]:
    contents = {str(number): asdict(content) for number, content in found.contents.items()} if found.must_write else {}
    return {
        "changelog": found.facts.store.changelog,
        "stage": found.stage,
        "backwards": False,
        "in_order": found.facts.store.type == VERSIONED,
        "exactness": found.judgement,
        "read": found.counts.read,
        "keys": found.counts.keys,
        "actions": {str(number): dict(actions) for number, actions in found.actions.items()},
        "contents": contents,
        "prior_stage": "",
        "prior_contents": {},
    }


def _items(found: Computed) -> list[Item]:
    items = []
    contents: Mapping[int, Any] = found.contents if found.must_write else {}
    for number, bounds in sorted(found.facts.changelog_bounds.items()):
        target, end = f"{found.facts.store.changelog}:{number}", bounds.log_end_offset
        if number not in contents:
            items.append(Item(target, "none", end, end, "up to date"))
            continue
        counts = ", ".join(f"{count:,} {name}" for name, count in found.actions.get(number, {}).items() if count)
        items.append(Item(target, "append", end, end + contents[number].records, f"{counts} (exactness {found.grade})"))
    return items


def _summary(old: str, new: str, computed: Sequence[Computed]) -> str:
    records = sum(content.records for found in computed if found.must_write for content in found.contents.values())
    stores = ", ".join(f"{found.facts.store.name} {found.counts.keys:,} keys" for found in computed)
    return f"give {new} the state that {old} has ({stores}): append {records:,} records"
