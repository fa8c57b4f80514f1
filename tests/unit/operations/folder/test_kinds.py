"""The files of a folder of the whole cluster: each is read as it was written, and what is wrong in one is named."""

import pytest
import yaml

from kops.config.yaml_files import placed_documents
from kops.core import quotas
from kops.core.acls import files as acls
from kops.core.acls.models import ALLOW, DENY, PREFIXED, Acl
from kops.core.cluster.models import Quota
from kops.core.errors import ConfigError
from kops.core.schemas.models import AVRO, Reference, Schema
from kops.operations.folder import schemas, users
from kops.operations.folder.kinds import NAMES
from kops.operations.folder.manifest import read_manifest
from kops.operations.folder.settings import BROKERS, GROUPS, SUBSCRIPTIONS
from kops.output.yaml_text import write_yaml_documents


def as_read(tmp_path, documents):
    """Return documents as kops reads what it has written."""
    file = tmp_path / "file.yaml"
    with file.open("w", encoding="utf-8") as stream:
        write_yaml_documents(documents, stream)
    return placed_documents(file)


def test_acls_are_read_as_they_were_written(tmp_path):
    entries = [
        Acl("User:CN=a, O=b: c", ALLOW, "READ", "topic", " t ", host="10.0.0.1"),
        Acl("User:*", DENY, "ALL", "group", "*"),
        Acl("User:*", ALLOW, "DESCRIBE", "cluster", "kafka-cluster"),
        Acl("User:*", ALLOW, "READ", "cluster", "kafka-cluster"),  # brokers do not check it, but have it
        Acl("User:null", ALLOW, "WRITE", "transactional-id", "0x1f", PREFIXED),
        Acl("User:null", ALLOW, "CREATE_TOKENS", "user", "User:\u202e"),
        Acl("User:null", ALLOW, "17", "9", "of a newer Kafka"),
    ]
    assert sorted(acls.parse_documents(as_read(tmp_path, acls.documents(entries)))) == sorted(entries)


def test_quotas_are_read_as_they_were_written(tmp_path):
    found = [
        Quota({"user": ""}, {"producer_byte_rate": 5e15, "request_percentage": 0.00001}),
        Quota({"user": "1_0", "client-id": ""}, {"consumer_byte_rate": 1.0}),
        Quota({"ip": "10.0.0.1"}, {"connection_creation_rate": 5.0}),
        Quota({"client-id": " null"}, {"controller_mutation_rate": 0.1}),
    ]
    assert quotas.parse_documents(as_read(tmp_path, map(quotas.document, found))) == found


def test_users_and_settings_are_read_as_they_were_written(tmp_path):
    assert users.parse_documents(as_read(tmp_path, [{"name": "true", "mechanisms": {"SCRAM-SHA-512": 5000}}])) == {
        "true": {"SCRAM-SHA-512": 5000}
    }
    documents = [{"broker": "default", "config": {"a.ms": "0100", "b": ""}}, {"broker": "1", "config": {"a.ms": "2m"}}]
    read = {name: one.settings for name, one in BROKERS.parse(as_read(tmp_path, documents)).items()}
    assert read == {"": {"a.ms": "0100", "b": ""}, "1": {"a.ms": "120000"}}


def test_schemas_are_read_as_they_were_written(tmp_path):
    text = '{"type": "record", "doc": "a: b\\n\u2028"}\n'
    version = {"type": "avro", "schema": text, "references": [{"name": "a.B", "subject": ":.b:c", "version": 2}]}
    common = {"compatibility": "NONE", "mode": "READONLY"}
    found = {"subject": "1", "versions": [version, {"version": 4, **version}, version]}
    read = schemas.parse_documents(as_read(tmp_path, [common, found]))
    same = Schema(AVRO, text, (Reference("a.B", ":.b:c", 2),))
    assert {name: (one.settings, one.schemas) for name, one in read.items()} == {
        "": (common, {}),
        "1": ({}, {1: same, 4: same, 5: same}),
    }


def test_versions_come_after_those_that_they_refer_to():
    """Those of a subject stay together where they can; subjects may refer to each other, versions cannot."""

    def schema(*references):
        return Schema(AVRO, "{}", tuple(Reference("r", name, number) for name, number in references))

    def order(**given):
        return list(schemas.runs({name: dict(enumerate(some, 1)) for name, some in given.items()}, "file"))

    assert order(a=[schema(("b", 1)), schema(("b", 2))], b=[schema(), schema()]) == [("b", [1, 2]), ("a", [1, 2])]
    assert order(a=[schema(), schema(("b", 1), ("a", 1)), schema(("b", 2))], b=[schema(("a", 1)), schema(("a", 2), ("else", 1))]) == [
        ("a", [1]),
        ("b", [1]),
        ("a", [2]),
        ("b", [2]),
        ("a", [3]),
    ]
    for circle in ({"a": [schema(("b", 1))], "b": [schema(("a", 1))]}, {"a": [schema(("a", 2)), schema()]}, {"a": [schema(("a", 1))]}):
        with pytest.raises(ConfigError, match="versions refer to each other: a version 1"):
            order(**circle)


ENTRY = "{resource: topic, name: t, operations: [READ]}"


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (acls.parse_documents, f"principal: a\nallow: [{ENTRY}]\n---\nallow: []", "document 2: principal is missing"),
        (acls.parse_documents, "principal: 'User:'\nallow: []", "principal cannot be: 'User:' is not a principal"),
        (acls.parse_documents, "principal: a", "neither allows nor denies"),
        (acls.parse_documents, f"principal: a\nallow: {ENTRY}", "allow must be a list, not a mapping"),
        (acls.parse_documents, f"principal: a\nalow: [{ENTRY}]", "alow is not a field of an ACL document"),
        (acls.parse_documents, f"principal: a\nallow: [{ENTRY}]\ndeny: [{ENTRY[:-1]}, hosts: b}}]", "deny[0].hosts is not a field"),
        (acls.parse_documents, "principal: a\nallow: [{resource: topik, name: t, operations: [READ]}]", "allow[0].resource cannot be"),
        (acls.parse_documents, "principal: a\nallow: [{resource: topic, operations: [READ]}]", "allow[0].name is missing"),
        (acls.parse_documents, "principal: a\nallow: [{resource: cluster, name: b, operations: [ALTER]}]", "allow[0].name is b"),
        (acls.parse_documents, "principal: a\nallow: [{resource: topic, name: t}]", "allow[0].operations is missing"),
        (acls.parse_documents, f"principal: a\nallow: [{ENTRY.replace('READ', 'RED')}]", "allow[0].operations cannot be: 'RED'"),
        (acls.parse_documents, f"principal: a\nallow: [{ENTRY[:-1]}, pattern: prefix}}]", "allow[0].pattern is 'prefix'"),
        (acls.parse_documents, "- a", "the file must be a mapping, not a list"),
        (quotas.parse_documents, "quotas: {consumer_byte_rate: 1}", "nothing says whose quota"),
        (quotas.parse_documents, "user: a\nip: b\nquotas: {}", "an ip has quotas of its own"),
        (quotas.parse_documents, "user: a\ndefaults: [user]\nquotas: {}", "both a user and the default user"),
        (quotas.parse_documents, "defaults: [users]\nquotas: {}", "defaults has 'users'"),
        (quotas.parse_documents, "user: a\nquotas: {consumer_byte_rates: 1}", "quotas.consumer_byte_rates cannot be"),
        (quotas.parse_documents, "user: a\nquotas: {consumer_byte_rate: -1}", "quotas.consumer_byte_rate cannot be"),
        (quotas.parse_documents, "user: a\nquotas: {consumer_byte_rate: }", "quotas.consumer_byte_rate is missing"),
        (quotas.parse_documents, "user: a", "quotas is missing"),
        (quotas.parse_documents, "user: a\nquotas: {}\n---\nuser: a\nquotas: {}", "document 2: the file declares user a twice"),
        (users.parse_documents, "name: a\npassword: b", "password is not a field of a user without a password"),
        (users.parse_documents, "name: a\nmechanisms: {SCRAM-SHA-1: 4096}", "mechanisms.SCRAM-SHA-1 is not a mechanism"),
        (users.parse_documents, "name: a\nmechanisms: {SCRAM-SHA-512: 1}", "mechanisms.SCRAM-SHA-512 is 1"),
        (users.parse_documents, "name: a\nmechanisms: {}", "mechanisms is empty"),
        (users.parse_documents, "name: a\nmechanisms: {SCRAM-SHA-512: 4096}\n---\nname: a", "document 2: name a is declared twice"),
        (schemas.parse_documents, "versions: []", "subject is missing"),
        (schemas.parse_documents, "subject: a\ncompatibility: SOME", "compatibility is 'SOME'"),
        (schemas.parse_documents, "subject: a\nversions: [{type: xml, schema: b}]", "versions[0].type is xml"),
        (schemas.parse_documents, "subject: a\nversions: [{type: avro, schema: b}, {type: avro}]", "versions[1].schema is missing"),
        (schemas.parse_documents, "subject: a\nversion: [{type: avro}]", "version is not a field of a subject"),
        (
            schemas.parse_documents,
            "subject: a\nversions: [{type: avro, schema: b, references: [{name: c, subject: d, version: latest}]}]",
            "versions[0].references[0].version is latest",
        ),
        (schemas.parse_documents, "subject: a\nmode: WRITE", "mode is 'WRITE'"),
        (schemas.parse_documents, "subject: a\nversions: [{version: 0, type: avro, schema: b}]", "versions[0].version is 0"),
        (
            schemas.parse_documents,
            "subject: a\nversions: [{version: 2, type: avro, schema: b}, {version: 2, type: avro, schema: b}]",
            "versions[1].version is 2",
        ),
        (schemas.parse_documents, "subject: a\n---\nsubject: a", "document 2: subject a is declared twice"),
        (BROKERS.parse, "broker: one\nconfig: {a: b}", "broker is one"),
        (BROKERS.parse, "broker: 1\nconfig: {a: }", "config.a has no value"),
        (BROKERS.parse, "broker: 1\nconfig: {a: b}\n---\nbroker: 01\nconfig: {a: b}", "document 2: broker 1 is declared twice"),
        (GROUPS.parse, "name: a\nsettings: {a: b}", "settings is not a field of group settings"),
        (SUBSCRIPTIONS.parse, "name: a", "config is missing"),
        (SUBSCRIPTIONS.parse, "name: a\nconfig: {}", "config is empty"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, read, text, said):
    file = tmp_path / "file.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read(placed_documents(file))
    assert refused.value.message.startswith(str(file))
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("owns", "refused"),
    [
        ({"acls": ["User:*"]}, True),
        ({"acls": ["*:*"]}, True),
        ({"acls": ["User:shop-*"]}, False),
        ({"quotas": ["user *"]}, True),
        ({"quotas": ["user *, client-id *"]}, True),
        ({"quotas": ["user shop-*", "default user"]}, False),
        ({"groups": ["*"]}, True),
        ({"brokers": ["default", "1"]}, False),
    ],
)
def test_no_glob_owns_everything_of_a_kind(tmp_path, owns, refused):
    (tmp_path / "manifest.yaml").write_text(yaml.safe_dump({"owner": "shop", "owns": owns}))
    if not refused:
        assert read_manifest(tmp_path, NAMES).needed_owner() == "shop"
        return
    with pytest.raises(ConfigError, match="would own every"):
        read_manifest(tmp_path, NAMES)
