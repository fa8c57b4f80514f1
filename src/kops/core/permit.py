"""Whether requests that change something may be sent: only while a plan is carried out, so that planning changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Permit:
    """Gateways of a session ask it before every request that is not known to change nothing.

    :param always: for gateways without a session, as the sandbox's own
    """

    def __init__(self, *, always: bool = False) -> None:
        self._always = always
        self._granted = 0

    @contextmanager
    def granted(self) -> Iterator[None]:
        """Permit everything until the block ends, in every thread."""
        self._granted += 1
        try:
            yield
        finally:
            self._granted -= 1

    def require(self, request: str) -> None:
        """Refuse a request unless a plan is being carried out.

        :raises RuntimeError: a bug of kops: something that only looks, or plans, would have changed the cluster
        """
        if not self._always and not self._granted:
            raise RuntimeError(f"{request} was not sent: it may change something, and no plan is being carried out")


ALWAYS = Permit(always=True)
