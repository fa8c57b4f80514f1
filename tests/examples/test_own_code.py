"""``examples/own-code``: what no state file says is lost, and comes back by the application's own program."""

import base64
import io
import json
import shutil
import subprocess
from dataclasses import dataclass

import fastavro
import pytest

from kops.core.murmur2 import partition_for
from support.broken_copies import assert_equal, assert_same_stores, rebuild_by_program
from support.examples import Copy, process
from support.programs import Record
from support.streams import java_with

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

HOUR = 3_600_000
START = 480_000 * HOUR
CARD = {"type": "record", "name": "Card", "fields": [{"name": name, "type": "long"} for name in ("hour", "limit", "paid")]}
FINGERPRINT = 10
"""How many bytes stand before a value in Avro's single-object encoding."""
CARDS = [f"card-{number}" for number in range(12)]
ONE_OF_EACH_PARTITION = sorted({partition_for(card.encode(), 3): card for card in CARDS}.values())


@dataclass
class ByProgram(Copy):
    """A copy of which kops has no state file."""

    @property
    def application(self):
        return f"{self.prefix}fraud-app"

    @property
    def changelogs(self):
        return {"cards": f"{self.application}-cards-changelog"}


class Feed:
    """Makes records of the two topics, their values by the example's own command."""

    def __init__(self, copy):
        self._command = [*java_with(copy.host.classes), "Avro"]
        self._known = {}

    def limits(self, time, cents):
        return {"limits": [Record(card.encode(), self._encoded("Limit", {"cents": each}), START + time) for card, each in cents.items()]}

    def payments(self, time, cents, cards):
        """Each card pays, a second after the one before."""
        value = self._encoded("Payment", {"shop": "books", "cents": cents})
        return {"payments": [Record(card.encode(), value, START + time + at * 1000) for at, card in enumerate(cards)]}

    def _encoded(self, kind, value):
        line = json.dumps({"value": value})
        if line not in self._known:
            done = subprocess.run([*self._command, kind], input=line, stdout=subprocess.PIPE, text=True, check=True)
            self._known[line] = base64.b64decode(json.loads(done.stdout)["value"])
        return self._known[line]


def paid(copy):
    """Return of each card its limit, and what it has paid."""
    found = {}
    for key, entry in copy.view("cards").items():
        card = fastavro.schemaless_reader(io.BytesIO(entry.value[FINGERPRINT:]), CARD)
        found[key.decode()] = card["limit"], card["paid"]
    return found


def alerts(copy):
    return sum(map(len, copy.output().values()))


def test_a_fraud_detector_comes_back_by_its_own_program(copies):
    twin, broken = both = copies("own-code", "FraudApplication", 2, kind=ByProgram, inputs=["payments", "limits"], outputs=["alerts"])
    feed = Feed(twin)
    process(
        both,
        feed.limits(0, {"card-0": 5000, "card-1": 5000, "card-2": 9000}),
        feed.payments(60_000, 3000, CARDS),
        feed.payments(120_000, 2500, CARDS[:3]),
        feed.payments(HOUR, 100, ONE_OF_EACH_PARTITION),  # cards without a limit, of which there is no payment, are forgotten
        feed.limits(HOUR + 60_000, {"card-0": 7000}),
        feed.payments(HOUR + 120_000, 3000, CARDS[:2]),
    )
    assert {card: each for card, each in paid(twin).items() if card in CARDS[:3]} == {
        card: (limit, spent + 100 * (card in ONE_OF_EACH_PARTITION))
        for card, limit, spent in [("card-0", 7000, 3000), ("card-1", 5000, 3000), ("card-2", 9000, 0)]
    }
    assert set(paid(twin)) == {*CARDS[:3], *ONE_OF_EACH_PARTITION}
    assert alerts(twin) == 2
    broken.cluster.empty(broken.changelogs["cards"])
    shutil.rmtree(broken.state)
    rebuild_by_program(broken)
    assert_same_stores(broken, twin)
    process(both, feed.payments(HOUR + 300_000, 2500, CARDS))
    assert alerts(twin) == 3
    assert_equal(broken, twin)
