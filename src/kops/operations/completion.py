"""Names that complete command lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kops.config.load import read_config
from kops.core.models import INTERNAL_TOPICS
from kops.operations.services import Services

TOPICS, GROUPS, CONTEXTS, SUBJECTS = "topics", "groups", "contexts", "subjects"
CONNECTORS, USERS, TOKENS = "connectors", "users", "tokens"
SETTINGS, SETTING_NAMES = "settings", "setting names"
"""Topic settings as they begin an assignment (``retention.ms=``), and by their names alone."""


def names(services: Services, kind: str, prefix: str, *, seconds: float) -> list[str]:
    """Return the names of one kind that begin with a prefix; Kafka's internal topics only if the prefix begins with an underscore.

    :param kind: one of the constants of this module
    :param seconds: timeout of one request to the brokers
    """
    if kind == CONTEXTS:
        return sorted(name for name in read_config(services.directories).contexts if name.startswith(prefix))
    if kind in (SETTINGS, SETTING_NAMES):
        from kops.core.topics.settings import SETTINGS as OF_TOPICS

        return [f"{name}{'=' if kind == SETTINGS else ''}" for name in OF_TOPICS if name.startswith(prefix)]
    if kind == SUBJECTS:
        from kops.gateways.registry.subjects import Subjects

        return [name for name in Subjects(services.connection).names() if name.startswith(prefix)]
    listed: dict[str, Callable[[], Iterable[str]]] = {
        CONNECTORS: lambda: (one.name for one in services.connect.connectors()),
        USERS: services.kafka.principals.credentials,
        TOKENS: lambda: (one.id for one in services.kafka.tokens.listed()),
    }
    if kind in listed:
        return sorted(name for name in listed[kind]() if name.startswith(prefix))
    from kops.gateways.kafka.names import group_names, topic_names

    client = services.kafka.client
    if kind == GROUPS:
        return group_names(client, prefix, seconds)
    found = [name for name in topic_names(client, seconds) if name.startswith(prefix)]
    return [name for name in found if prefix.startswith("_") or name not in INTERNAL_TOPICS]
