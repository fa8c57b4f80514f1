"""Why a connector or a task failed, judged by the exceptions in its stack trace, and what to do about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from kops.core.findings import command

DEAD_LETTERS = "errors.deadletterqueue.topic.name"


class Cause(Enum):
    LOGIN = "login"
    SETTING = "setting"
    RECORD = "record"
    PASSING = "passing"
    OTHER = "other"


_SIGNS = (
    (
        Cause.LOGIN,
        r"\w*AuthenticationException|\w*AuthorizationException|SSLHandshakeException|password authentication failed|Access denied for user"
        r"|401 Unauthorized|403 Forbidden",
    ),
    (
        Cause.RECORD,
        r"Tolerance exceeded in error handler|DataException|SerializationException|Json(?:Parse|Mapping|Processing)Exception"
        r"|AvroTypeException|SchemaParseException|InvalidProtocolBufferException|SchemaProjectorException",
    ),
    (
        Cause.SETTING,
        r"NoSuchFileException|FileNotFoundException|AccessDeniedException|NotDirectoryException|FileSystemException|ConfigException"
        r"|UnknownHostException|ClassNotFoundException|NoClassDefFoundError|InvalidTopicException|No suitable driver",
    ),
    (
        Cause.PASSING,
        r"TimeoutException|DisconnectException|NetworkException|RetriableException|NotLeaderOrFollowerException|NotEnoughReplicas\w*"
        r"|CoordinatorNotAvailableException|ConnectException: Connection refused|Connection refused|Connection reset|SocketException"
        r"|CommunicationsException|RebalanceNeededException|ProducerFencedException",
    ),
)
_KINDS = tuple((cause, re.compile(rf"(?<!\w)(?:{signs})")) for cause, signs in _SIGNS)


def cause_of(trace: str) -> Cause:
    """Classify a stack trace by its root cause, or by the last cause that can be classified."""
    causes = [line for line in trace.splitlines() if line.strip() and not line.lstrip().startswith(("at ", "... "))]
    return next((kind for line in reversed(causes) for kind, signs in _KINDS if signs.search(line)), Cause.OTHER)


def advice(name: str, group: str | None, trace: str, config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the commands that help, best first.

    :param group: the group of a sink connector; None for a source
    :param config: the connector's configuration
    """
    cause, look = cause_of(trace), command("connect", "status", name, "--trace")
    if cause is Cause.PASSING:
        return command("connect", "restart", name, "--failed"), look
    if cause is Cause.SETTING and (key := _invalid_setting(trace, config)):
        return command("connect", "alter", name, "--config", f"{key}=VALUE"), look
    if cause is Cause.RECORD:
        tolerant = ["--config", "errors.tolerance=all"]
        if group is None:
            return look, command("connect", "alter", name, *tolerant)
        if not config.get(DEAD_LETTERS):
            tolerant += ["--config", f"{DEAD_LETTERS}={name}-dlq", "--config", "errors.deadletterqueue.context.headers.enable=true"]
        return command("records", "peek", group), command("connect", "alter", name, *tolerant), look
    return look, command("connect", "describe", name)


def _invalid_setting(trace: str, config: Mapping[str, str]) -> str | None:
    """Return the setting whose value the trace mentions, or whose name it mentions; if several, the one with the longest value."""
    named = [key for key, value in config.items() if len(value) > 1 and key not in ("name", "connector.class") and value in trace]
    if named:
        return max(named, key=lambda key: len(config[key]))
    return next((key for key in config if re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", trace)), None)
