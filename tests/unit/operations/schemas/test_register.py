"""A registration whose answer was lost: the registry is asked whether the schema is there."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kops.core.errors import Refused
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.core.schemas.models import Schema, SchemaVersion
from kops.operations.schemas import register as schemas_register
from kops.operations.schemas.register import REGISTERING, Registration

SCHEMA = Schema("AVRO", '"string"')
LOST = ItemResult("orders-value", Status.UNKNOWN, error={"code": "timed_out", "message": "no answer"})
PLAN = Plan(
    "schemas.register",
    "",
    "cluster-1",
    "test",
    (Item("orders-value", "add a version"),),
    guard={"registry": "here", "orders-value": {"version": 3, "id": 30}},
    arguments=Registration(SCHEMA),
)


@pytest.fixture
def registry(monkeypatch):
    """A registry of one subject, whose versions a test sets."""
    known = {3: SchemaVersion("orders-value", 3, 30, SCHEMA)}
    fake = SimpleNamespace(
        registry=SimpleNamespace(shown_url="here"),
        find=lambda subject, schema: known.get(4),
        newest=lambda subject: known[max(known)],
        version=lambda subject, version: known[version],
    )
    monkeypatch.setattr(schemas_register, "Subjects", lambda *_: fake)
    return known


def test_nothing_was_registered(services, registry):
    assert REGISTERING.verify(services(), PLAN, [LOST]) == (LOST,)
    for results in ([LOST], []):
        with pytest.raises(Refused, match="nothing was registered"):
            REGISTERING.invert(services(), PLAN, results)


def test_it_was_registered_after_all(services, registry):
    registry[4] = SchemaVersion("orders-value", 4, 40, SCHEMA)
    (found,) = REGISTERING.verify(services(), PLAN, [LOST])
    assert (found.status, found.value) == (Status.DONE, {"id": 40, "version": 4})
    for results in ([LOST], []):  # no answer; killed
        undo = REGISTERING.invert(services(), PLAN, results)
        assert (undo.arguments.version, undo.losses) == (4, ())
    registry[5] = replace(registry[4], version=5)
    assert REGISTERING.invert(services(), PLAN, [found]).losses == ("version 5 of orders-value was registered since",)
