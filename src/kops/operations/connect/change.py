"""The mutation that creates, changes and deletes connectors together, and the plans for it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

from kops.core.connect.models import PAUSED, RUNNING, STOPPED, Connector, own_config
from kops.core.connect.secrets import masked, scrubbed, secret_texts
from kops.core.errors import KopsError, Refused, StateMoved, UsageProblem, VerificationFailed
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status, not_done
from kops.core.topics.changes import Changes
from kops.operations.connect.create_topics import TopicPart, results_of, skipped, topics_of, undo_topics, with_topics
from kops.operations.connect.create_topics import named as named_topics
from kops.operations.connect.files import CHANGE, CREATE, DELETE, ConnectorChange, changed_settings, read_declaration
from kops.operations.connect.mutation import ConnectMutation, connect_plan, done, done_unless_failed, poll_until, run_each
from kops.operations.connect.redaction import RedactedConfig, config_digest, digest_key, redact
from kops.operations.connect.restart import Watch
from kops.operations.connect.select import by_name, counted, named
from kops.operations.connect.states import failures_of
from kops.operations.connect.validate import OTHER_NAME
from kops.operations.protocol.mutation import compare_guard
from kops.operations.services import Services
from kops.operations.topics.change import CHANGE_TOPICS

NAME = "connect.change"
SETTLE_SECONDS = 10.0
LOST_SECRETS = "undo cannot restore {}: kops keeps no secrets; apply its file again, or use references such as ${{file:...}}"


@dataclass(frozen=True, slots=True)
class Step:
    """A change of one connector, without its secrets.

    :param state: the state of the connector before, or the initial one of a new connector
    :param passwords: settings that the plugin declares as secrets
    """

    name: str
    action: str
    file: str
    state: str
    passwords: tuple[str, ...]
    after: RedactedConfig | None
    before: RedactedConfig | None


@dataclass(frozen=True, slots=True)
class Steps(Arguments):
    steps: tuple[Step, ...]
    topics: TopicPart | None = None

    def as_json(self) -> Json:
        steps = [{**asdict(step), "passwords": list(step.passwords)} for step in self.steps]
        return {"steps": steps} | ({"topics": self.topics.as_json()} if self.topics else {})

    @classmethod
    def of_json(cls, body: Json) -> Steps:
        topics = body.get("topics")
        return cls(tuple(_step_of(each) for each in body["steps"]), None if topics is None else TopicPart.of_json(topics))


def _step_of(body: Json) -> Step:
    sealed = {when: None if body[when] is None else RedactedConfig(**body[when]) for when in ("after", "before")}
    return Step(**{**body, **sealed, "passwords": tuple(body["passwords"])})


def plan_changes(
    services: Services,
    changes: Sequence[ConnectorChange],
    unchanged: Mapping[str, str],
    *,
    warnings: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    losses: tuple[str, ...] = (),
    topics: Plan[Changes] | None = None,
) -> Plan[Steps]:
    """Plan changes to connectors.

    :param unchanged: connectors that stay as they are, with the reason to show
    :param topics: a plan that only creates topics, or only deletes some
    """
    for change in changes:
        obstacle = services.connect.obstacle(change.name) if change.action == CREATE else None
        if obstacle:
            raise UsageProblem(f"connector {change.name} could be created, but not changed or deleted: {obstacle}", hint=OTHER_NAME)
    key = digest_key(services)
    items = [_item(change) for change in changes] + [Item(name, "none", reason=reason) for name, reason in unchanged.items()]
    deleted = [change.name for change in changes if change.action == DELETE]
    parts = []
    for action in (CREATE, CHANGE, DELETE):
        names = [change.name for change in changes if change.action == action]
        parts += [f"{action} {named(names)}"] if names else []
    steps = [_step(change, key) for change in changes]
    kept = ["offsets stay where they are: a connector of the same name resumes from them"] if deleted else []
    lost = {step.name: _lost(step) for step in steps if _lost(step)}
    kept += [LOST_SECRETS.format(f"{', '.join(settings)} of {name}") for name, settings in lost.items()]
    plan = connect_plan(
        services,
        NAME,
        ", ".join(parts) if parts else "every connector is up to date",
        items,
        Steps(tuple(steps)),
        delete=deleted[0] if len(deleted) == 1 else counted(deleted) if deleted else "",
        guard={change.name: config_digest(None if change.actual is None else change.actual.config, key) for change in changes},
        warnings=warnings,
        notes=(*notes, *kept),
        losses=losses,
    )
    return with_topics(plan, topics) if topics is not None and topics.has_changes else plan


def _item(change: ConnectorChange) -> Item:
    before = None if change.actual is None else masked(own_config(change.actual.config), change.passwords)
    after = None if change.config is None else masked(change.config, change.passwords)
    if change.actual is not None and change.config is not None:
        old, new = changed_settings(own_config(change.actual.config), change.config, change.passwords)
        return Item(change.name, CHANGE, {key: value for key, value in old.items() if value is not None}, new)
    reason = f"as {change.state}" if change.action == CREATE and change.state != RUNNING else ""
    return Item(change.name, change.action, before, after, reason)


def _step(change: ConnectorChange, key: bytes) -> Step:
    return Step(
        change.name,
        change.action,
        change.file,
        state=change.state if change.actual is None else change.actual.wanted_state,
        passwords=tuple(sorted(change.passwords)),
        after=None if change.config is None else redact(change.config, change.passwords, key),
        before=None if change.actual is None else redact(change.actual.config, change.passwords, key),
    )


def _lost(step: Step) -> list[str]:
    """Return the settings whose secrets are lost once a step is done."""
    if step.before is None:
        return []
    after = step.after.digests if step.after else {}
    return [name for name, digest in step.before.digests.items() if after.get(name) != digest]


class ChangeConnectors(ConnectMutation[Steps]):
    name: ClassVar[str] = NAME
    arguments = Steps

    def locks(self, plan: Plan[Steps]) -> Iterable[str]:
        own = plan.arguments.topics.targets if plan.arguments.topics else frozenset()
        return [item.target if item.target in own else f"connector {item.target}" for item in plan.changes]

    def check(self, services: Services, plan: Plan[Steps]) -> None:
        """Refuse if a connector or a topic has changed since the plan, or a secret can no longer be found.

        :raises StateMoved: naming it
        """
        key, found = digest_key(services), by_name(services)
        actual = {name: config_digest(found[name].config if name in found else None, key) for name in plan.guard}
        compare_guard(plan, actual, "a connector")
        for step in plan.arguments.steps:
            _with_secrets(step, found, key)
        if (topics := topics_of(services, plan)) is not None:
            CHANGE_TOPICS.check(services, topics)

    def apply(self, services: Services, plan: Plan[Steps]) -> Iterator[ItemResult]:
        """Create topics, change connectors, delete topics; what follows a change that was not made is left alone."""
        topics = topics_of(services, plan)
        creates = topics is not None and bool(topics.arguments.create)
        whole = True
        own = plan.arguments.topics.targets if plan.arguments.topics else frozenset()
        connectors = [item for item in plan.changes if item.target not in own]
        if topics is not None and creates:
            for result in named_topics(CHANGE_TOPICS.apply(services, topics)):
                whole = whole and result.status is Status.DONE
                yield result
        if not whole:
            yield from skipped([item.target for item in connectors], "topic could be created")
            return
        for result in self._change_connectors(services, plan, connectors):
            whole = whole and result.status is Status.DONE
            yield result
        if topics is not None and not creates:
            if whole:
                yield from named_topics(CHANGE_TOPICS.apply(services, topics))
            else:
                yield from skipped(sorted(own), "connector could be changed")

    @staticmethod
    def _change_connectors(services: Services, plan: Plan[Steps], items: Sequence[Item]) -> Iterator[ItemResult]:
        key, found = digest_key(services), by_name(services)
        steps = {step.name: step for step in plan.arguments.steps}

        def do(item: Item) -> None:
            step = steps[item.target]
            config: dict[str, str] = {}
            try:
                config = _with_secrets(step, found, key)
                _run_step(services, step, config)
            except KopsError as error:
                error.message = scrubbed(error.message, secret_texts(config, step.passwords))
                raise

        return run_each(items, do)

    def verify(self, services: Services, plan: Plan[Steps], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read topics and configurations back, and watch for a moment whether the tasks start."""
        topics = topics_of(services, plan)
        of_topics, results = results_of(plan.arguments.topics, results)
        if topics is not None:
            of_topics = list(CHANGE_TOPICS.verify(services, topics, of_topics))
        key, now = digest_key(services), by_name(services)
        steps = {step.name: step for step in plan.arguments.steps}
        wanted = {name: _target_digest(step, now, key) for name, step in steps.items() if name in done(results)}
        watches = {name: Watch(()) for name in wanted if steps[name].action == CHANGE and steps[name].state == RUNNING}

        def reached(name: str, one: Connector | None) -> bool:
            if name not in watches:
                return _has_config(one, wanted[name], key) and (one is None or _has_started(one))
            watches[name].observe(one, time.monotonic())  # its tasks restart, and a failure may be an old one
            return _has_config(one, wanted[name], key) and watches[name].decided

        found = poll_until(services, list(wanted), reached, seconds=SETTLE_SECONDS)
        of_connectors = tuple(
            _verified(result, found.get(result.target), wanted[result.target], key, state=steps[result.target].state)
            if result.target in wanted
            else result
            for result in results
        )
        return (*named_topics(of_topics), *of_connectors)

    def invert(self, services: Services, plan: Plan[Steps], results: Sequence[ItemResult]) -> Plan[Steps]:
        """Plan to restore the previous configurations, and to delete the topics that were created.

        :raises Refused: when a secret can no longer be found, or a topic is another one now
        """
        key, found = digest_key(services), by_name(services)
        untouched = not_done(results)
        changes, unchanged = [], {}
        losses = _changed_since(plan.arguments.steps, found, untouched, key)
        for step in plan.arguments.steps:
            name, actual = step.name, found.get(step.name)
            if name in untouched:
                continue
            if _matches_sealed(None if actual is None else actual.config, step.before, key):
                unchanged[name] = "does not exist" if actual is None else "as it was before"
                continue
            config = _previous_config(step, actual, key)
            changes.append(ConnectorChange(name, actual, config, step.file, frozenset(step.passwords), step.state))
        return plan_changes(services, changes, unchanged, losses=losses, topics=undo_topics(services, plan, results))

    def resume(self, services: Services, plan: Plan[Steps]) -> Plan[Steps]:
        """Plan the topics and steps that were not made.

        :raises StateMoved: when a connector is neither as it was nor as planned, or a secret can no longer be found
        """
        key, found = digest_key(services), by_name(services)
        moved = _changed_since(plan.arguments.steps, found, (), key)
        if moved:
            raise StateMoved("; ".join(moved), hint="run the command again to plan from what is there now")
        changes, unchanged = [], {}
        for step in plan.arguments.steps:
            actual = found.get(step.name)
            if _matches_sealed(None if actual is None else actual.config, step.after, key):
                unchanged[step.name] = "deleted already" if actual is None else "as planned already"
                continue
            config = _with_secrets(step, found, key) if step.after is not None else None
            changes.append(ConnectorChange(step.name, actual, config, step.file, frozenset(step.passwords), step.state))
        topics = topics_of(services, plan)
        return plan_changes(services, changes, unchanged, topics=None if topics is None else CHANGE_TOPICS.resume(services, topics))

    def can_be_undone(self, plan: Plan[Steps]) -> bool:
        """Whether the secrets of the previous configurations can still be found afterwards."""
        return not any(_lost(step) for step in plan.arguments.steps)

    def messages(self, services: Services, plan: Plan[Steps], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002
        """Report what has failed although its configuration was accepted."""
        return failures_of(services, done(results))


CHANGE_CONNECTORS = ChangeConnectors()


def _changed_since(steps: Sequence[Step], found: Mapping[str, Connector], not_done: Collection[str], key: bytes) -> tuple[str, ...]:
    """Describe the connectors that match neither the plan's result nor their state before it."""
    losses = []
    for step in steps:
        name = step.name
        actual = found[name].config if name in found else None
        ours = (step.after, step.before)
        if name not in not_done and not any(_matches_sealed(actual, one, key) for one in ours):
            what = "was deleted" if actual is None else "was created" if step.after is None else "has another configuration"
            losses.append(f"connector {name} {what} since")
    return tuple(losses)


def _matches_sealed(config: Mapping[str, str] | None, sealed: RedactedConfig | None, key: bytes) -> bool:
    """Whether a configuration is the one that a plan holds without its secrets."""
    if config is None or sealed is None:
        return config is None and sealed is None
    opened, missing = sealed.opened([config], key)
    return not missing and config_digest(opened, key) == config_digest(config, key)


def _with_secrets(step: Step, found: Mapping[str, Connector], key: bytes) -> dict[str, str]:
    """Return the configuration that a step sets, including secrets.

    :raises StateMoved: when a secret is no longer where the plan found it
    """
    if step.after is None:
        return {}
    sources: list[Mapping[str, str]] = [found[step.name].config] if step.name in found else []
    if step.file and step.after.digests:
        sources += [one.config for one in read_declaration([step.file]).connectors if one.name == step.name]
    config, missing = step.after.opened(sources, key)
    if missing:
        raise StateMoved(
            f"{', '.join(missing)} of {step.name} {'are' if len(missing) > 1 else 'is'} not in {step.file or 'Connect'} as planned",
            hint="plans hold no secrets: plan again, on the machine that has its file",
        )
    return config


def _previous_config(step: Step, actual: Connector | None, key: bytes) -> dict[str, str] | None:
    """Return the configuration from before a step; None if the connector did not exist.

    :raises Refused: when one of its secrets can no longer be found
    """
    if step.before is None:
        return None
    config, missing = step.before.opened([actual.config] if actual is not None else [], key)
    if missing:
        raise Refused(
            f"{', '.join(missing)} of {step.name} cannot be restored: kops keeps no secrets",
            hint="`kops connect apply` its file again, or use references such as ${file:...}",
        )
    return config


def _run_step(services: Services, step: Step, config: Mapping[str, str]) -> None:
    name = step.name
    if step.action == DELETE:
        services.connect.delete(name)
    elif step.action == CREATE:
        services.connect.create(name, config, step.state if step.state in (PAUSED, STOPPED) else None)
    else:
        services.connect.put(name, config)


def _target_digest(step: Step, found: Mapping[str, Connector], key: bytes) -> str | None:
    return None if step.after is None else config_digest(_with_secrets(step, found, key), key)


def _has_config(found: Connector | None, wanted: str | None, key: bytes) -> bool:
    return (None if found is None else config_digest(found.config, key)) == wanted


def _has_started(connector: Connector) -> bool:
    if connector.failed or connector.state in (PAUSED, STOPPED):
        return True
    return connector.state == RUNNING and bool(connector.tasks) and all(task.state == RUNNING for task in connector.tasks)


def _verified(result: ItemResult, found: Connector | None, wanted: str | None, key: bytes, *, state: str) -> ItemResult:
    if _has_config(found, wanted, key):
        return done_unless_failed(result.target, found, wanted=state)
    what = "still exists" if wanted is None else "does not exist" if found is None else "has another configuration"
    error = VerificationFailed(
        f"connector {result.target} {what}", hint="`kops connect describe` shows it; it may have been changed by others"
    )
    return ItemResult(result.target, Status.FAILED, error=error.as_json())
