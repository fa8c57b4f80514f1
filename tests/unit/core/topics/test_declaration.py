"""Files that declare topics: what they may say, and how they are refused."""

import pytest

from kops.core.errors import ConfigError
from kops.core.models import Partition, Setting, Topic
from kops.core.topics.declaration import DeclaredTopic, Remedy, compare
from kops.operations.topics.declared import read_declaration

WHOLE = """
owns: [shop-*, cart]
---
name: shop-orders
partitions: 6
replication_factor: 3
config:
  cleanup.policy: [compact, delete]
  retention.ms: 604800000
  preallocate: True
  index.interval.bytes: 0100
  min.cleanable.dirty.ratio: 0.5
---
name: shop-carts
---
"""


def declared(folder, text, name="topics.yaml"):
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return read_declaration([str(file)])


def test_all_that_a_file_may_say(tmp_path):
    found = declared(tmp_path, WHOLE)
    assert found.owns == ("shop-*", "cart")
    orders, carts = found.topics
    assert (orders.name, orders.partitions, orders.replication_factor) == ("shop-orders", 6, 3)
    assert orders.settings == {
        "cleanup.policy": "compact,delete",
        "retention.ms": "604800000",
        "preallocate": "true",
        "index.interval.bytes": "100",
        "min.cleanable.dirty.ratio": "0.5",
    }
    assert (carts.partitions, carts.replication_factor, carts.settings) == (None, None, {})
    assert carts.place == f"{tmp_path / 'topics.yaml'}, document 3"


def test_directories_are_read_through(tmp_path):
    (tmp_path / "deep").mkdir()
    for path, name in (("b.yml", "b"), ("a.yaml", "a"), ("deep/c.yaml", "c"), ("d.txt", "d")):
        (tmp_path / path).write_text(f"name: {name}\n", encoding="utf-8")
    assert [topic.name for topic in read_declaration([str(tmp_path), str(tmp_path / "a.yaml")]).topics] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("partitions: 1\n", "name", "name is missing"),
        ("name: a b\n", "name", "has the character ' '"),
        ("name: a\npartitons: 1\n", "partitons", "is not a field of a topic"),
        ("name: a\npartitions: 0\n", "partitions", "partitions is 0"),
        ("name: a\npartitions: 0x3\n", "partitions", "partitions is 0x3"),
        ("name: a\npartitions: true\n", "partitions", "partitions is true"),
        ("name: a\npartitions: [3]\n", "partitions", "partitions is ['3']"),
        ("name: a\nconfig: {preallocate: no}\n", "config.preallocate", "preallocate=no is not valid"),
        ("name: a\nconfig: {retention.ms: 12:30}\n", "config.retention.ms", "retention.ms=12:30 is not valid"),
        ("name: a\nreplication_factor: 40000\n", "replication_factor", "replication_factor is 40000"),
        ("name: a\nconfig: [x]\n", "config", "config must be a mapping, not a list"),
        ("name: a\nconfig: {retenton.ms: 1}\n", "config.retenton.ms", "there is no topic setting retenton.ms"),
        ("name: a\nconfig: {retention.ms: 7d}\n", "config.retention.ms", "it must be a whole number"),
        ("name: a\nconfig: {retention.ms: null}\n", "config.retention.ms", "has no value"),
        ("name: a\nconfig: {retention.ms: {a: b}}\n", "config.retention.ms", "is a mapping"),
        ("name: a\n---\nname: a\n", "name", "a is declared twice"),
        ("name: a.b\n---\nname: a_b\n", "name", "a_b collides with a.b"),
        ("owns: []\n", "owns", "must be a name, a glob, or a list of them"),
        ("owns: ['*']\n", "owns", "would own every topic there is"),
        ("owns: [a*]\nname: a\n", "name", "is not a field of a topic"),
    ],
)
def test_an_error_names_the_file_and_the_field(tmp_path, text, field, message):
    with pytest.raises(ConfigError, match=r"topics\.yaml") as wrong:
        declared(tmp_path, text)
    assert wrong.value.exit_code == 2
    assert wrong.value.details["field"] == field
    assert message in wrong.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [a\n", "line 2: not YAML"),
        ("name: a\nname: b\n", "line 2: not YAML: name is given twice"),
        ("name: a\nconfig:\n  retention.ms: 1\n  retention.ms: 2\n", "line 4: not YAML: retention.ms is given twice"),
        ("", "no topic is declared"),
        ("- name: a\n", "must be a mapping, not a list"),
        ("!!python/object/apply:os.system [ls]\n", "not YAML"),
    ],
)
def test_what_is_no_declaration(tmp_path, text, message):
    with pytest.raises(ConfigError, match=r"topics\.yaml") as wrong:
        declared(tmp_path, text)
    assert message in wrong.value.message


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.yaml").write_bytes("name: é\n".encode("latin-1"))
    for path, message in (("nothing", "No such file"), ("latin.yaml", "is not UTF-8"), (".", "is not UTF-8")):
        with pytest.raises(ConfigError, match=message):
            read_declaration([str(tmp_path / path)])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="has no files that end in"):
        read_declaration([str(tmp_path / "empty")])


def there(partitions=3, replicas=(1, 2), **own):
    settings = {name.replace("_", "."): Setting(name.replace("_", "."), value, "topic") for name, value in own.items()}
    settings.setdefault("segment.ms", Setting("segment.ms", "604800000", "default"))
    return Topic("t", tuple(Partition(number, 1, replicas, replicas) for number in range(partitions))), settings


@pytest.mark.parametrize(
    ("wanted", "actual", "expected"),
    [
        (DeclaredTopic("t"), there(), []),
        (DeclaredTopic("t", 3, 2, {"retention.ms": "5"}), there(retention_ms="5"), []),
        (DeclaredTopic("t", settings={"cleanup.policy": "delete,compact"}), there(cleanup_policy="compact,delete"), []),
        (DeclaredTopic("t", 4), there(), [("partitions", 3, 4, Remedy.GROW)]),
        (DeclaredTopic("t", 2), there(), [("partitions", 3, 2, Remedy.NONE)]),
        (DeclaredTopic("t", None, 3), there(), [("replication_factor", 2, 3, Remedy.NONE)]),
        (DeclaredTopic("t", settings={"retention.ms": "5"}), there(retention_ms="6"), [("retention.ms", "6", "5", Remedy.ALTER)]),
        (DeclaredTopic("t", settings={"segment.ms": "604800000"}), there(), [("segment.ms", "604800000", "604800000", Remedy.ALTER)]),
        (DeclaredTopic("t"), there(retention_ms="6"), [("retention.ms", "6", None, Remedy.LEAVE)]),
        (DeclaredTopic("t"), there(leader_replication_throttled_replicas="*"), []),
    ],
)
def test_what_differs(wanted, actual, expected):
    assert [(found.field, found.actual, found.declared, found.remedy) for found in compare(wanted, *actual)] == expected


def test_a_topic_that_is_not_there_and_settings_that_are_to_go():
    assert [found.remedy for found in compare(DeclaredTopic("t"), None, {})] == [Remedy.CREATE]
    topic, settings = there(retention_ms="6")
    assert [(found.field, found.remedy) for found in compare(DeclaredTopic("t"), topic, settings, reset=True)] == [
        ("retention.ms", Remedy.RESET)
    ]
