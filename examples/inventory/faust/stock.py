"""How one movement changes the stock of a shop: used by the Faust application, and by kops through ``state.yaml``."""

from __future__ import annotations

from typing import Any


class Stock:
    """The sum of the quantities. A reducer of kops (``kops.core.statefile.reducers``)."""

    def initial(self) -> int:
        """Return the stock of a shop that nothing is known of."""
        return 0

    def add(self, shop: str, movement: dict[str, Any], stock: int) -> int:  # noqa: ARG002 - as kops calls it
        """Return the stock after a movement."""
        return stock + movement["quantity"]
