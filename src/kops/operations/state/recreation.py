"""Proof, before a topic is deleted, that it can be created again: the brokers are asked, and nothing is changed.

A request to create the topic under its own name, which is there, is refused for that alone where the principal may create it. Policies,
settings and replicas are tried under another name that begins alike, so that rights on a prefix hold for it too.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace

from kops.core.errors import AuthorizationFailed, KopsError, Refused
from kops.core.models import NewTopic
from kops.operations.services import Services
from kops.operations.state.switch_topics import TopicChange

_NEEDED = ("DELETE", "WRITE")
_LONGEST = 249
"""Characters of a topic's name (``Topic.MAX_NAME_LENGTH``)."""


def refuse_unless_recreatable(services: Services, changes: Iterable[TopicChange]) -> None:
    """Refuse to delete what could not be created again with its partitions, replicas and settings, or not be written.

    :raises Refused: naming the topic and what is in the way; nothing has been changed
    """
    wanted = {change.name: change.after for change in changes if change.before and change.after and not change.done}
    if not wanted:
        return
    there = services.kafka.topics.existing(wanted)
    for name, operations in services.kafka.topics.rights(there).items():
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
    trials = [_renamed(wanted[name], trial) for trial, name in scratch.items()]
    for trial, error in services.kafka.topics.create(trials, validate_only=True).items():
        if isinstance(error, AuthorizationFailed):
            error.hint = f"its settings are tried under another name: grant CREATE on topics that begin with {scratch[trial]}"
        if error is not None:
            raise _refusal(scratch[trial], error)


def _refusal(name: str, error: KopsError) -> Refused:
    hint = f"{error.hint}; nothing was changed" if error.hint else "nothing was changed"
    return Refused(f"{name} would be deleted, and could not be created again: {error.message}", hint=hint, topic=name)


def _scratch_name(name: str) -> str:
    suffix = f"-kops-{secrets.token_hex(4)}"
    return f"{name[: _LONGEST - len(suffix)]}{suffix}"


def _renamed(topic: NewTopic, name: str) -> NewTopic:
    return replace(topic, name=name)
