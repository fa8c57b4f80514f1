"""What every operation receives. Importing it loads nothing: read-only operations load neither the journal nor the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from kops.config.connection import Connection
    from kops.config.paths import Directories
    from kops.core.permit import Permit
    from kops.core.progress import Progress
    from kops.gateways.connect import Connect
    from kops.gateways.kafka import Kafka


class Services(Protocol):
    """The connection, clients and directories of a session."""

    @property
    def connection(self) -> Connection: ...

    @property
    def directories(self) -> Directories: ...

    @property
    def permit(self) -> Permit:
        """What gateways need to change something; the safety protocol grants it."""

    @property
    def kafka(self) -> Kafka: ...

    @property
    def connect(self) -> Connect: ...

    @property
    def progress(self) -> Progress: ...

    def now(self) -> datetime:
        """Return the current time in UTC."""
