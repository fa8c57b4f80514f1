"""Topic settings: the table is Kafka's own, values are written as Kafka shows them."""

import subprocess

import pytest

from kops.core.errors import UsageProblem
from kops.core.topics.settings import (
    INT_MAX,
    LONG_MAX,
    SETTINGS,
    Choice,
    Flag,
    Ratio,
    Replicas,
    WholeNumber,
    WordList,
    broker_defaults,
    canonical,
    canonical_settings,
    readable_value,
)
from kops.gateways.machine.jars import class_path
from support.patience import HANG_SECONDS

DUMP = """
import org.apache.kafka.storage.internals.log.LogConfig;
public class Dump {
    public static void main(String[] arguments) {
        LogConfig.configKeys().values().stream().filter(key -> !key.internalConfig)
            .forEach(key -> System.out.println(key.name + "|" + key.type + "|" + key.validator));
    }
}
"""


def described(kind):
    """A kind as Kafka's ConfigDef describes it: its type and its validator."""
    if isinstance(kind, WholeNumber):
        type_ = "INT" if kind.most <= INT_MAX else "LONG"
        end = "" if kind.most in (INT_MAX, LONG_MAX) else kind.most
        special = f" or {kind.special}" if kind.special is not None else ""
        return type_, "null" if kind.least == -(2**63) else f"[{kind.least},...{f',{end}' if end else ''}]{special}"
    return {
        Ratio: lambda: ("DOUBLE", "[0,...,1]"),
        Flag: lambda: ("BOOLEAN", "null"),
        Choice: lambda: ("STRING", f"[{', '.join(kind.words)}]"),
        WordList: lambda: ("LIST", f"[{', '.join(kind.words)}]"),
        Replicas: lambda: ("LIST", "[partitionId]:[brokerId],[partitionId]:[brokerId],..."),
    }[type(kind)]()


def test_the_table_is_that_of_kafka(jdk, kafka_jar_files, tmp_path):
    source = tmp_path / "Dump.java"
    source.write_text(DUMP)
    out = subprocess.run(
        [jdk.java, "-cp", class_path(kafka_jar_files), source], capture_output=True, text=True, check=True, timeout=HANG_SECONDS
    ).stdout
    kafkas = {name: (type_, validator) for name, type_, validator in (line.split("|") for line in out.splitlines())}
    assert {name: described(kind) for name, kind in SETTINGS.items()} == kafkas


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("cleanup.policy", "delete, compact", "delete,compact"),
        ("cleanup.policy", "", ""),
        ("retention.ms", " +7 ", "7"),
        ("retention.ms", "-1", "-1"),
        ("preallocate", "TRUE", "true"),
        ("min.cleanable.dirty.ratio", "0.25", "0.25"),
        ("compression.gzip.level", "-1", "-1"),
        ("vendor.own", "Whatever", "Whatever"),
    ],
)
def test_values_as_kafka_shows_them(name, given, kept):
    assert canonical(name, given) == kept


def test_an_unknown_name_is_refused_with_the_nearest_and_without_asking():
    with pytest.raises(UsageProblem) as refused:
        canonical_settings({"retenton.ms": "1"}, also_known=lambda: pytest.fail("asked the brokers"))
    assert refused.value.hint == "did you mean retention.ms?"


def test_a_name_that_only_newer_brokers_know_is_let_through():
    assert canonical_settings({"quux.future": "1"}, also_known=lambda: {"quux.future"}) == {"quux.future": "1"}
    assert canonical_settings({"confluent.tier.enable": "true"}) == {"confluent.tier.enable": "true"}
    with pytest.raises(UsageProblem, match=r"there is no topic setting quux\.past"):
        canonical_settings({"quux.past": "1"}, also_known=lambda: {"quux.future"})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", "7d", "604800000"),
        ("retention.ms", "1h30m", "5400000"),
        ("retention.bytes", "50GiB", "53687091200"),
        ("retention.bytes", "1.5 GB", "1500000000"),
        ("segment.bytes", "64mib", "67108864"),
        ("retention.bytes", "-1", "-1"),
    ],
)
def test_a_value_with_a_unit_becomes_what_kafka_takes(name, text, value):
    assert canonical(name, text) == value


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("retention.ms", "7x", "7d"),
        ("retention.bytes", "50G", "64MiB"),
        ("retention.bytes", "5d", "64MiB"),
        ("segment.bytes", "1.0001KB", "50MB"),
    ],
)
def test_a_unit_that_cannot_be_read_is_explained(name, text, hint):
    with pytest.raises(UsageProblem, match=f"{name}={text} is not valid") as refused:
        canonical(name, text)
    assert hint in refused.value.hint


@pytest.mark.parametrize(("name", "text"), [("flush.messages", "3k"), ("min.cleanable.dirty.ratio", "1d"), ("segment.bytes", "1KB")])
def test_units_only_where_kafka_wants_times_and_bytes_and_within_its_bounds(name, text):
    with pytest.raises(UsageProblem, match="is not valid"):
        canonical(name, text)


@pytest.mark.parametrize(
    ("text", "range_"), [("3GiB", "at most 2147483647"), ("1KB", "at least 1048576"), ("-1", "at least 1048576"), ("2147483648", "at most")]
)
def test_the_bound_that_a_number_is_beyond_is_named(text, range_):
    with pytest.raises(UsageProblem, match=f"segment.bytes={text} is not valid: it must be {range_}"):
        canonical("segment.bytes", text)


def test_defaults_come_from_the_first_broker_setting_that_is_set():
    assert broker_defaults({"log.retention.ms": None, "log.retention.hours": "2"}) == {"retention.ms": "7200000"}
    assert broker_defaults({"log.retention.ms": "5", "log.retention.hours": "2"}) == {"retention.ms": "5"}
    assert broker_defaults({}) == {}


def test_times_for_people():
    assert readable_value("retention.ms", "604800000") == "604800000 (7d)"
    assert readable_value("retention.bytes", "53687091200") == "53687091200 (50.0 GiB)"
    assert readable_value("max.message.bytes", "1000") == "1000"
    assert readable_value("flush.ms", str(2**63 - 1)) == str(2**63 - 1)
    assert readable_value("retention.ms", "-1") == "-1"
