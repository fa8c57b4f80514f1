"""Plan files and journal entries as kops writes them, written with a real registry: still shown, applied and undone.

Each file holds what ``--plan-out`` saved, the closed entry, and what ``journal show`` printed.
"""

import json
from types import SimpleNamespace

import pytest

from kops.core.errors import NotFound
from kops.core.plan import plan_document, plan_from_json
from kops.core.schemas.models import Reference, RegisteredSchema, Schema, SchemaVersion
from kops.operations.protocol import registry
from kops.operations.schemas import register
from support.earlier_plans import journaled, read_earlier, saved, without_digest
from support.groups_in_memory import GroupsInMemory

EARLIER = read_earlier(__file__)
PLAN = EARLIER["register"]["plan"]
SUBJECT = PLAN["items"][0]["target"]
GIVEN = PLAN["arguments"]["schema"]
SCHEMA = Schema(GIVEN["schemaType"], GIVEN["schema"], tuple(Reference(**each) for each in GIVEN["references"]))
MONEY = 'syntax = "proto3"; package money; message Amount { double euros = 1; }'


class SubjectsInMemory:
    """A registry whose subject has no versions at first; ids begin with 2, as in the files."""

    def __init__(self):
        self.known = {}
        self.registry = SimpleNamespace(
            shown_url=PLAN["guard"]["registry"], schema=lambda number: RegisteredSchema(number, SCHEMA.kind, SCHEMA.text)
        )

    def register(self, subject, schema):
        number = len(self.known) + 1
        self.known[number] = SchemaVersion(subject, number, 2, schema)
        return 2

    def delete(self, subject, version):
        self.known[version] = None

    def versions(self, subject):
        return [number for number, found in self.known.items() if found is not None]

    def version(self, subject, version):
        if version not in self.versions(subject):
            raise NotFound(f"no version {version}")
        return self.known[version]

    def newest(self, subject):
        return self.known[max(self.versions(subject))] if self.versions(subject) else None

    def find(self, subject, schema):
        return next((found for found in self.known.values() if found is not None and found.schema == schema), None)

    def level(self, subject):
        return "FULL", True

    def whole(self, schema):
        return RegisteredSchema(0, schema.kind, schema.text, (("money.proto", MONEY),))


@pytest.fixture
def subjects(monkeypatch):
    made = SubjectsInMemory()
    monkeypatch.setattr(register, "Subjects", lambda *_: made)
    monkeypatch.setattr("kops.gateways.kafka.Kafka", lambda *_, **__: GroupsInMemory({}, {}, PLAN["cluster_id"]))
    return made


@pytest.fixture
def kops(run_kops):
    return lambda *words: run_kops(*words, "-B", "127.0.0.1:9")


@pytest.mark.parametrize("name", EARLIER)
def test_arguments_round_trip(name):
    body = EARLIER[name]["closed"]["plan"]
    plan = registry.typed(plan_from_json(body))
    assert plan.arguments.schema == SCHEMA
    assert json.loads(json.dumps(plan.as_json())) == body


@pytest.mark.parametrize("name", EARLIER)
def test_entry_is_shown_as_before(name, kops):
    entry = journaled(EARLIER[name]["closed"])
    assert kops("journal", "show", entry, "-o", "csv").ok().out == EARLIER[name]["shown"]


def test_plan_files_are_applied(kops, subjects, tmp_path):
    kops("apply", saved(tmp_path / "add", PLAN), "--yes").ok()
    assert subjects.known == {1: SchemaVersion(SUBJECT, 1, 2, SCHEMA)}
    kops("apply", saved(tmp_path / "delete", EARLIER["unregister"]["plan"]), "--confirm", SUBJECT).ok()
    assert subjects.versions(SUBJECT) == []
    assert kops("apply", tmp_path / "delete", "--confirm", SUBJECT).code == 5, "it was deleted meanwhile"


def test_entries_are_undone(kops, subjects):
    subjects.register(SUBJECT, SCHEMA)
    kops("undo", journaled(EARLIER["register"]["closed"]), "--confirm", SUBJECT).ok()
    assert subjects.versions(SUBJECT) == []
    kops("undo", journaled(EARLIER["unregister"]["closed"]), "--yes").ok()
    assert subjects.versions(SUBJECT) == [2]


@pytest.mark.parametrize("name", EARLIER)
def test_damaged_arguments_are_refused(name, kops, subjects, tmp_path):
    plan = without_digest(EARLIER[name]["plan"]) | {"arguments": {"other": 1}}
    file = saved(tmp_path / "plan", plan_document(plan_from_json(plan)))
    assert kops("apply", file, "--yes").code == 2
