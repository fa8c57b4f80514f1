"""The session of a replay to another cluster: what is changed is the target, so its context decides."""

from __future__ import annotations

from kops.cli.frame.session import Session
from kops.core.errors import UsageProblem

_OF_CLUSTER = ("context", "bootstrap_server", "properties", "command_config")


def in_context(session: Session, name: str | None) -> tuple[Session, str | None]:
    """Return the session of the target, and the context of the source where that is another.

    :raises UsageProblem: when the source is no context, which a later run could not reach again
    """
    if name is None:
        return Session(session.settings), None
    source = session.connection.name
    if not source or "bootstrap_server" in session.settings:
        raise UsageProblem(
            "--to-context needs the source to be a context too", hint="`kops context add NAME --bootstrap-servers HOST:PORT`"
        )
    own = {key: value for key, value in session.settings.items() if key not in _OF_CLUSTER}
    return Session({**own, "context": name}), source
