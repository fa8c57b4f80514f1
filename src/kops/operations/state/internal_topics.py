"""Internal topics that a plan creates, deletes, or recreates: what exists, what is left to do, doing it.

Before a topic is deleted, the brokers are asked whether it can be created again, and nothing is changed. A request to create the topic
under its own name is refused only because it exists if the principal may create it. Policies, settings and replicas are tried under
another name with the same beginning, so that permissions on a prefix apply to it too.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kops.core.errors import AuthorizationFailed, KopsError, Refused, StateMoved, TimedOut
from kops.core.findings import counted
from kops.core.models import NewTopic, Topic
from kops.core.plan import Item, ItemResult, Status
from kops.core.settings import same_value
from kops.core.topics.changes import new_topic_json
from kops.core.topics.names import LONGEST_NAME
from kops.operations.protocol.mutation import failed
from kops.operations.services import Services
from kops.operations.topics.read_back import not_as_planned

CREATE, DELETE, REPLACE = "create", "delete", "replace"
_NEEDED = ("DELETE", "WRITE")


@dataclass(frozen=True)
class TopicChange:
    """A topic before and after.

    :param before: None: it does not exist
    :param after: None: it is deleted
    :param topic_id: of the topic before; one with another id was created by this plan, or by someone else
    :param done: whether this was done in an earlier attempt
    """

    before: NewTopic | None
    after: NewTopic | None
    topic_id: str | None = None
    done: bool = False

    @property
    def name(self) -> str:
        topic = self.after or self.before
        if topic is None:
            raise ValueError("a change of nothing")
        return topic.name

    @property
    def action(self) -> str:
        if self.before and self.after:
            return REPLACE
        return CREATE if self.after else DELETE

    def item(self, reason: str) -> Item:
        return Item(self.name, self.action, _shape(self.before), _shape(self.after), reason)

    def backwards(self, topic_id: str | None) -> TopicChange:
        return TopicChange(self.after, self.before, topic_id)


def changes_json(changes: Iterable[TopicChange]) -> list[dict[str, Any]]:
    return [
        {
            **asdict(change),
            "before": change.before and new_topic_json(change.before),
            "after": change.after and new_topic_json(change.after),
        }
        for change in changes
    ]


def changes_of_json(body: Iterable[Mapping[str, Any]]) -> list[TopicChange]:
    return [
        TopicChange(
            change["before"] and NewTopic(**change["before"]),
            change["after"] and NewTopic(**change["after"]),
            change["topic_id"],
            change["done"],
        )
        for change in body
    ]


def topic_ids(services: Services, changes: Iterable[TopicChange]) -> dict[str, str | None]:
    """Return the ids of the topics that exist, None for those that do not.

    :raises Refused: when the brokers give topics no ids: then the old and the new topic cannot be distinguished
    """
    names = [change.name for change in changes]
    found = services.kafka.topics.existing(names)
    if any(topic.topic_id is None for topic in found.values()):
        raise Refused(
            "these brokers give topics no ids, so a topic cannot be replaced safely: the old and the new one could not be distinguished",
            hint="Kafka 2.8 and newer give topics ids, once inter.broker.protocol.version is 2.8 or newer",
        )
    return {name: found[name].topic_id if name in found else None for name in names}


def left_to_do(services: Services, changes: Sequence[TopicChange]) -> list[TopicChange]:
    """Return the changes, with those that an earlier attempt made marked as done.

    :raises StateMoved: when a topic is neither as it was, nor gone, nor as it was to be
    """
    found = services.kafka.topics.existing([change.name for change in changes])
    left = []
    for change in changes:
        topic = found.get(change.name)
        if topic is None:
            left.append(replace(change, topic_id=None, done=change.after is None))
        elif topic.topic_id == change.topic_id:
            left.append(change)
        elif change.after is not None and len(topic.partitions) == change.after.partitions:
            left.append(replace(change, topic_id=topic.topic_id, done=True))
        else:
            raise StateMoved(f"{change.name} was created by somebody else since", hint="see `kops topics describe`; then plan again")
    return left


def refuse_unless_recreatable(services: Services, changes: Iterable[TopicChange]) -> None:
    """Refuse to delete what could not be created again with its partitions, replicas and settings, or not be written.

    :raises Refused: naming the topic and the reason; nothing has been changed
    """
    wanted = {change.name: change.after for change in changes if change.before and change.after and not change.done}
    if not wanted:
        return
    there = services.kafka.topics.existing(wanted)
    for name, operations in services.kafka.topics.rights(there, of_cluster=True).items():
        lacking = [operation for operation in _NEEDED if operations is not None and operation not in operations]
        if lacking:
            raise _refusal(name, AuthorizationFailed(f"the principal lacks {' and '.join(lacking)} on topic {name}"))
    for name, settings in services.kafka.topics.settings(list(there)).items():
        hidden = sorted(setting.name for setting in settings.values() if setting.source == "topic" and setting.value is None)
        if hidden:
            raise _refusal(name, Refused(f"the brokers do not show the value of its settings {', '.join(hidden)}"))
    for name, error in services.kafka.topics.create([*wanted.values()], validate_only=True).items():
        if error is not None and error.details.get("kafka_error") != "TOPIC_ALREADY_EXISTS":
            raise _refusal(name, error)
    scratch = {_scratch_name(name): name for name in there}
    trials = [replace(wanted[name], name=trial) for trial, name in scratch.items()]
    for trial, error in services.kafka.topics.create(trials, validate_only=True).items():
        if isinstance(error, AuthorizationFailed):
            error.hint = f"its settings are tried under another name: grant CREATE on topics that begin with {scratch[trial]}"
        if error is not None:
            raise _refusal(scratch[trial], error)


def change_topics(services: Services, changes: Sequence[TopicChange], items: Mapping[str, Item]) -> Iterator[ItemResult]:
    """Delete the topics that go, then create the new ones, and yield a result per topic."""
    if not changes:
        return
    to_do = [change for change in changes if not change.done]
    there = services.kafka.topics.existing([change.name for change in to_do])
    gone = services.kafka.topics.delete([change.name for change in to_do if change.before and change.name in there])
    made = services.kafka.topics.create([change.after for change in to_do if change.after and gone.get(change.name) is None])
    found = services.kafka.topics.existing([name for name, error in made.items() if error is None])
    for change in changes:
        error: KopsError | None = gone.get(change.name) or made.get(change.name)
        if error is not None and not gone.get(change.name) and change.before and not isinstance(error, TimedOut):
            body = {**error.as_json(), "message": f"{change.name} is deleted, and was not created again: {error.message}"}
            yield ItemResult(change.name, Status.PARTIAL, error=body)
        elif error is not None:
            yield failed(items[change.name], error)
        else:
            topic = found.get(change.name)
            yield ItemResult(change.name, Status.DONE, value={"topic_id": topic.topic_id if topic else change.topic_id})


def verified_topic(services: Services, change: TopicChange, result: ItemResult) -> ItemResult:
    if result.status not in (Status.DONE, Status.UNKNOWN):
        return result
    found = services.kafka.topics.existing([change.name]).get(change.name)
    wrong = _wrong(services, change, found)
    if not wrong and result.status is Status.DONE:
        return result
    if not wrong and (found is None or found.topic_id != change.topic_id):  # if it is still the old topic, nothing was done
        return ItemResult(result.target, Status.DONE, value={"topic_id": found.topic_id if found else change.topic_id})
    if result.status is Status.UNKNOWN:
        return result
    return not_as_planned(result, wrong)


def _wrong(services: Services, change: TopicChange, found: Topic | None) -> str:
    if change.after is None or found is None:
        return "" if (change.after is None) == (found is None) else "it still exists" if found else "it does not exist"
    if len(found.partitions) != change.after.partitions:
        return f"it has {counted(len(found.partitions), 'partition')}, not {change.after.partitions}"
    if change.after.replication_factor not in (None, found.replication_factor):
        return f"it has {counted(found.replication_factor, 'replica')}, not {change.after.replication_factor}"
    settings = services.kafka.topics.settings([change.name], missing_ok=True).get(change.name, {})
    wanted = {name: value for name, value in change.after.settings.items() if name in settings}
    unlike = [name for name, value in wanted.items() if not same_value(name, value, settings[name].value)]
    return f"settings differ: {', '.join(unlike)}" if unlike else ""


def _shape(topic: NewTopic | None) -> dict[str, Any] | None:
    return None if topic is None else {"partitions": topic.partitions, "settings": dict(topic.settings)}


def _refusal(name: str, error: KopsError) -> Refused:
    hint = f"{error.hint}; nothing was changed" if error.hint else "nothing was changed"
    return Refused(f"{name} would be deleted, and could not be created again: {error.message}", hint=hint, topic=name)


def _scratch_name(name: str) -> str:
    suffix = f"-kops-{secrets.token_hex(4)}"
    return f"{name[: LONGEST_NAME - len(suffix)]}{suffix}"
