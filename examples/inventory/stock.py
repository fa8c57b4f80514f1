"""How one movement changes the stock of a shop: used by the Faust application, and by kops through the state files."""

from __future__ import annotations

from typing import Any


class Stock:
    """The quantity of each item. A reducer of kops (``kops.core.statefile.reducers``)."""

    def initial(self) -> dict[str, int]:
        """Return the stock of a shop that nothing is known of."""
        return {}

    def add(self, shop: str, movement: dict[str, Any], stock: dict[str, int]) -> dict[str, int]:  # noqa: ARG002 - as kops calls it
        """Return the stock after a movement."""
        item = movement["item"]
        return {**stock, item: stock.get(item, 0) + movement["quantity"]}
