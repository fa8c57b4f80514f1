"""How many pieces of each item a shop has, as a table of Faust: ``PYTHONPATH=.. faust -A inventory_faust worker --without-web``.

Reads the topic ``movements`` (key, the id of the shop; value {"item": "chair", "quantity": -2}) and keeps the table ``stock``, whose
changelog is ``inventory-faust-stock-changelog``. KAFKA names the brokers, PREFIX goes before all names.
"""

from __future__ import annotations

import os

import faust
from stock import Stock

PREFIX = os.environ.get("PREFIX", "")
PARTITIONS = 4
"""Those of the topic: Faust refuses a table with another number."""

app = faust.App(
    f"{PREFIX}inventory-faust",
    broker=f"kafka://{os.environ['KAFKA']}",
    store="memory://",
    topic_partitions=PARTITIONS,
    topic_disable_leader=True,
    broker_commit_interval=0.2,
    stream_wait_empty=False,
)
movements = app.topic(f"{PREFIX}movements", key_type=str, value_serializer="json", partitions=PARTITIONS)
stock = app.Table("stock", default=dict, partitions=PARTITIONS)
step = Stock()


@app.agent(movements)
async def move(stream: faust.StreamT) -> None:
    """Apply each movement to the stock of its shop."""
    async for shop, movement in stream.items():
        stock[shop] = step.add(shop, movement, stock[shop])
