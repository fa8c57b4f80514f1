"""Where brokers do not write what a share group gives up, although it has a dead letter topic (KIP-1191). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

TOPIC, COPY = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.copy.record.enable"
"""Settings of a group."""
ENABLE = "errors.deadletterqueue.group.enable"
"""The setting of a topic that lets share groups write dead letters to it."""
CREATE, PREFIX = "errors.deadletterqueue.auto.create.topics.enable", "errors.deadletterqueue.topic.name.prefix"
"""Settings of brokers; PREFIX is what the names of such topics have to begin with."""
_LOST = "what the group gives up is written nowhere, without an error"


def dead_letter_warnings(
    settings: Mapping[str, str | None], of_topic: Mapping[str, str | None] | None, of_broker: Mapping[str, str | None]
) -> Iterator[str]:
    """Say what keeps dead letters from being written, or sent back (``ShareGroupDLQStateManager``).

    :param settings: of the group
    :param of_topic: settings of its dead letter topic; None: it does not exist
    :param of_broker: settings of a broker; one that it does not have, or does not show, is not judged
    """
    topic = settings.get(TOPIC)
    if not topic:
        return
    prefix = of_broker.get(PREFIX) or ""
    if not topic.startswith(prefix):
        yield f"brokers take only dead letter topics whose names begin with {prefix} ({PREFIX}): {_LOST}"
    if of_topic is None:
        if of_broker.get(CREATE) == "false":
            yield f"topic {topic} does not exist, and brokers do not create it ({CREATE}=false): until it does, {_LOST}"
    elif of_topic.get(ENABLE) == "false":
        yield f"topic {topic} has {ENABLE}=false: {_LOST}; `kops topics alter {topic} --config {ENABLE}=true`"
    if settings.get(COPY) == "false":
        yield f"dead letters have neither key nor value ({COPY}=false): `kops replay redrive` cannot send them back"
