"""Delegation tokens (KIP-48), without what they authenticate with. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kops.core.times import time_text


@dataclass(frozen=True)
class Token:
    """A token as brokers describe it; times are milliseconds since the epoch.

    :param owner: the principal that a client with it has
    :param requester: who created it; empty before Kafka 3.3
    :param expires: when it stops to work, unless it is renewed
    :param ends: until when it can be renewed
    :param renewers: principals that may renew it, besides the owner
    """

    id: str
    owner: str
    requester: str
    issued: int
    expires: int
    ends: int
    renewers: tuple[str, ...] = ()

    def as_json(self, now: int) -> dict[str, Any]:
        return {
            "token": self.id,
            "owner": self.owner,
            "requester": self.requester or None,
            "state": "expired" if self.expires <= now else "valid",
            "issued_at": time_text(self.issued),
            "expires_at": time_text(self.expires),
            "ends_at": time_text(self.ends),
            "renewers": list(self.renewers),
        }
