"""Why what a program writes, when it is run again, may not be what it wrote: none is a certainty that has to be right."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.streams.capture import Processor, RocksDBSetter, Sink
from kops.core.streams.capture_file import read_capture
from kops.core.streams.program import in_order
from kops.core.streams.program_doubts import doubts_about, open_to_order, topics_in_any_partition
from support import verdicts

CAPTURED = json.loads((Path(__file__).parent / "capture.json").read_text(encoding="utf-8"))
PARTITIONS = {"clicks": 4, "views": 4, "many-by-value-repartition": 4, "many-apart-repartition": 7, "users": 2, "orders": 1}
OF_ONE = {**PARTITIONS, "clicks": 1, "views": 1, "many-by-value-repartition": 1}


@pytest.fixture
def capture():
    return read_capture(CAPTURED, "c.json")


@pytest.fixture
def sure(capture):
    """The capture of a program that leaves no doubt: each task reads one topic, and there are no global stores."""
    alone = lambda each: replace(each, source_topics=("clicks",)) if each.number == 0 else each  # noqa: E731
    settings = replace(capture.settings, producer={})
    return replace(capture, global_stores=(), settings=settings, subtopologies=tuple(map(alone, capture.subtopologies)))


def store(capture, name):
    return next(each for each in capture.stores if each.name == name)


def altered(capture, name, **changed):
    """Return a capture in which a store, or a node, is another."""
    change = lambda each: replace(each, **changed) if each.name == name else each  # noqa: E731
    return replace(capture, stores=tuple(map(change, capture.stores)), nodes=tuple(map(change, capture.nodes)))


def doubts(capture, name, partitions=OF_ONE):
    found = doubts_about(capture, store(capture, name), partitions)
    return [*found.of_order, *lasting(found)]


def lasting(found):
    """Return why values may be otherwise, whatever the runs show."""
    return verdicts.doubts(found.findings)


def remarks(found):
    return verdicts.remarks(found.findings)


def varied(capture, *names, partitions=OF_ONE):
    others = [number for number in in_order(capture) if number not in (3, 4)]  # those of the foreign-key join are always open
    return open_to_order(capture, [store(capture, name) for name in names], others, partitions)


def test_one_partition_and_the_librarys_processors_leave_no_doubt(sure):
    assert doubts(sure, "counts", PARTITIONS) == []
    assert doubts(sure, "windows") == []


def test_what_feeds_a_task_in_an_unknown_order_is_named(capture):
    said = " ".join(doubts(capture, "windows", PARTITIONS))
    assert "4 tasks write into many-by-value-repartition" in said
    assert "each task of sub-topology 0 reads clicks and views" in said


def test_global_stores_are_named_where_a_processor_may_read_them(capture):
    said = "the program has global stores (settings-store), and how far they were when a record was read is not known"
    assert said in doubts(capture, "seen")  # its processor is the program's own
    assert said not in doubts(capture, "counts")
    for supplier in ("org.apache.kafka.streams.kstream.internals.KStreamGlobalKTableJoin", None):
        assert said in doubts(altered(capture, "KSTREAM-AGGREGATE-0000000001", supplier=supplier), "counts")


def test_a_table_that_a_join_behind_a_global_table_looks_into_is_not_doubted(capture):
    """The join reads it and writes nowhere, unless it is the program's own class."""
    said = "the program has global stores (settings-store), and how far they were when a record was read is not known"
    internals, at = "org.apache.kafka.streams.kstream.internals", capture.nodes[0].name
    before = Processor("by-global", (at,), f"{internals}.KStreamGlobalKTableJoin", None, False, (), (), (), False, False, {})
    join = replace(before, name="by-table", supplier=f"{internals}.KStreamKTableJoin", predecessors=("by-global",), stores=("counts",))
    numbers = [replace(each, nodes=(*each.nodes, before.name, join.name)) if each.number == 0 else each for each in capture.subtopologies]
    users = [replace(each, processors=(*each.processors, join.name)) if each.name == "counts" else each for each in capture.stores]

    def joined(by):
        return replace(capture, nodes=(*capture.nodes, before, by), subtopologies=tuple(numbers), stores=tuple(users))

    assert said not in doubts(joined(join), "counts")
    assert said in doubts(joined(replace(join, supplier="com.acme.KStreamKTableJoin", program_class=True)), "counts")


def test_a_suppression_holds_offsets(sure):
    """Those of its input are known, those of a repartition topic are not; and it gets what a cache passes on."""
    offsets = "its records hold their offsets in many-by-value-repartition, and those are not known"
    assert set(doubts(sure, "final-store")) == {
        offsets,
        "the stores windows pass on what their caches hold whenever these are flushed, and when that was is not known",
    }
    direct = lambda each: replace(each, source_topics=("clicks",), repartition_topics=()) if each.number == 1 else each  # noqa: E731
    uncached = altered(replace(sure, subtopologies=tuple(map(direct, sure.subtopologies))), "windows", caching=False)
    assert doubts(uncached, "final-store") == []
    (numbered,) = doubts(altered(uncached, "final", suppresses=False), "final-store")
    assert "its keys hold a number" in numbered  # that of a join with grace


def test_runs_in_other_orders_settle_the_order_and_nothing_else(capture):
    found = doubts_about(capture, store(capture, "windows"), PARTITIONS)
    assert [reason.partition(",")[0] for reason in found.of_order] == [
        "4 tasks write into many-by-value-repartition",
        "each task of sub-topology 0 reads clicks and views",
    ]
    assert len(lasting(found)) == 1  # of the producer's settings


def test_which_sub_topologies_an_order_may_change(sure, capture):
    assert varied(sure, "counts", "windows") == set()
    assert varied(sure, "counts", "windows", partitions=PARTITIONS) == {1, 2}  # of their writers there are four tasks
    assert varied(capture, "counts") == {0, 1, 2}  # two topics, and all behind them
    both = behind(sure, "counts", "sessions")
    assert varied(both, "counts") == set()
    assert varied(both, "sessions") == {0, 1, 2}


def test_what_acts_on_stream_time(sure):
    timed = altered(sure, "dedup", mentions=("STREAM_TIME",))
    said = "these may act on stream time, and between which records they did is not known: dedup"
    found = doubts_about(timed, store(timed, "seen"), OF_ONE)
    assert said in found.of_order
    assert found.shows_stream_time
    assert not doubts_about(sure, store(sure, "seen"), OF_ONE).shows_stream_time
    assert doubts(timed, "counts") == []
    assert varied(timed, "seen") == {6}
    assert varied(timed, "counts") == set()


def test_the_programs_own_processors_are_named(capture):
    assert doubts_about(capture, store(capture, "seen"), OF_ONE).own_processors == ("dedup (ManyStores$Dedup)",)
    assert doubts_about(capture, store(capture, "counts"), OF_ONE).own_processors == ()


def test_a_store_that_keeps_a_limited_number_of_keys(capture):
    assert "LRU stores evict other keys after a restart: seen (100)" in doubts(capture, "seen")


def test_what_a_lost_store_without_a_changelog_decided(capture):
    said = "these stores have no changelog, and an instance that lost them started empty: recent"
    assert said in doubts(capture, "seen")


def behind(capture, first, second):
    """Return a capture in which what one store's processor sends on reaches the processor of another."""
    (sends,) = store(capture, first).processors
    (takes,) = store(capture, second).processors
    return altered(capture, takes, predecessors=(sends,))


def test_what_a_cache_passes_on_is_not_known(sure):
    """The store with the cache holds what it should; how many results reached the store behind it, no log has."""
    both = behind(sure, "counts", "sessions")
    assert doubts(both, "counts") == []
    said = ["the stores counts pass on what their caches hold whenever these are flushed, and when that was is not known"]
    assert doubts(both, "sessions") == said
    assert doubts(altered(both, "counts", caching=False), "sessions") == []
    assert doubts(altered(both, "counts", caching=None), "sessions") == said


def test_what_a_cache_passes_on_through_a_repartition_topic(sure):
    (sends,) = store(sure, "counts").processors
    sink = next(node for node in sure.nodes if isinstance(node, Sink) and node.topic == "many-by-value-repartition")
    assert "the stores counts pass on" in " ".join(doubts(altered(sure, sink.name, predecessors=(sends,)), "windows"))


def test_what_windows_send_when_they_close(sure):
    both = altered(behind(sure, "sessions", "counts"), "sessions", caching=False)
    (sends,) = store(both, "sessions").processors
    assert doubts(both, "counts") == []
    (said,) = doubts(altered(both, sends, emits_on_close=True), "counts")
    assert said == f"results are sent when the time of day says so, not by each record, which nothing has: {sends}"


def test_what_an_outer_join_sends(sure):
    left, _ = store(sure, "pairs-left-shared-join-store").processors
    (takes,) = store(sure, "counts").processors
    joined = altered(sure, takes, predecessors=(left,))
    assert f"results are sent when the time of day says so, not by each record, which nothing has: {left}" in doubts(joined, "counts")


def test_the_stores_of_joins_depend_on_more_than_their_input(sure):
    numbered = "its keys hold a number that counts from 0 again each time an instance of the application starts"
    assert numbered in doubts(sure, "pairs-this-join-store")
    waiting = "what found no partner is sent, and leaves the store, when the time of day says so: once a second"
    assert waiting in doubts(sure, "pairs-left-shared-join-store")


def test_windows_of_which_it_is_not_known_whether_their_keys_have_numbers(sure):
    assert len(doubts(altered(sure, "windows", retain_duplicates=None), "windows")) == 1


def test_who_chooses_partitions(sure):
    (said,) = (each for each in doubts(sure, "lengths", {**OF_ONE, "many-apart-repartition": 1}))
    assert said.endswith("which may go by more than the record: many-apart-repartition by ManyStores$First")
    by = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    round_robin = replace(sure, settings=replace(sure.settings, producer={"partitioner.class": by}))
    (said,) = doubts(round_robin, "windows")
    assert said.endswith(f": many-by-value-repartition by {by}")
    default = "org.apache.kafka.clients.producer.internals.DefaultPartitioner"  # as 2.8 says
    assert doubts(replace(sure, settings=replace(sure.settings, producer={"partitioner.class": default})), "windows") == []
    ignoring = replace(sure, settings=replace(sure.settings, producer={"partitioner.ignore.keys": "true"}))
    (said,) = doubts(ignoring, "windows")
    assert said.endswith(": many-by-value-repartition by partitioner.ignore.keys")
    (said,) = doubts(replace(sure, settings=replace(sure.settings, producer=None)), "windows")
    assert said.startswith("the settings of the program's producer could not be read")


@pytest.mark.parametrize("given", ["com.acme.Mask,com.acme.Sign", ["com.acme.Mask", {"instance_of": "com.acme.Sign"}]])
def test_interceptors_that_may_change_records(sure, given):
    for side in ("main_consumer", "producer"):
        (said,) = doubts(replace(sure, settings=replace(sure.settings, **{side: {"interceptor.classes": given}})), "counts")
        assert said == "interceptors of its clients are not called here, and may change records: com.acme.Mask, com.acme.Sign"
    traced = "io.opentelemetry.instrumentation.kafkaclients.v2_6.TracingProducerInterceptor"
    assert doubts(replace(sure, settings=replace(sure.settings, producer={"interceptor.classes": [traced]})), "counts") == []


def test_who_makes_the_clients(sure):
    (said,) = doubts(replace(sure, client_supplier="com.acme.Clients"), "counts")
    assert said.startswith("its clients are made by com.acme.Clients, which is not asked here")
    of_library = "org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier"
    assert doubts(replace(sure, client_supplier=of_library), "counts") == []


def test_what_lets_rocksdb_drop_entries(sure):
    def by(*mentions):
        return replace(sure, rocksdb_setter=RocksDBSetter("com.acme.Bounded", mentions))

    assert doubts(by(), "counts") == []
    (said,) = doubts(by("FIFO", "setCompactionFilter"), "counts")
    assert said.startswith("com.acme.Bounded may let RocksDB drop or change entries of its stores")
    assert said.endswith("by FIFO, setCompactionFilter")
    (said,) = doubts(replace(sure, rocksdb_setter=RocksDBSetter("com.acme.Bounded")), "counts")
    assert said.endswith("with options that could not be read")
    in_memory = tuple(replace(store, persistent=False) for store in sure.stores)
    assert doubts(replace(by("FIFO"), stores=in_memory), "counts") == []


def test_what_wraps_processors_hides_them(sure):
    def wrapped(by):
        return replace(sure, settings=replace(sure.settings, effective={**sure.settings.effective, "processor.wrapper.class": by}))

    (said,) = doubts(wrapped("com.acme.Traced"), "counts")
    assert said.startswith("com.acme.Traced wraps the program's processors (processor.wrapper.class)")
    assert doubts(wrapped("org.apache.kafka.streams.processor.internals.NoOpProcessorWrapper"), "counts") == []


def test_estimates_of_stores_are_others_here(sure):
    guessing = altered(sure, "dedup", mentions=("approximateNumEntries",))
    assert "these ask stores for approximateNumEntries, which is another estimate here: dedup" in doubts(guessing, "seen")
    assert doubts(guessing, "counts") == []


@pytest.mark.parametrize("changed", [{"kind": None}, {"layers": ("com.acme.OwnStore",)}])
def test_stores_of_the_programs_own_classes(sure, changed):
    assert doubts(altered(sure, "counts", **changed), "counts") == ["these stores are of the program's own classes: counts"]


@pytest.mark.parametrize(("version", "known"), [("2.7.2", False), ("2.8.2", True), ("4.4.0", True), ("4.5.0", True), (None, False)])
def test_versions_that_programs_have_been_run_with(sure, version, known):
    capture = replace(sure, streams_version=version)
    assert (doubts(capture, "counts") == []) is known
    untested = remarks(doubts_about(capture, store(capture, "counts"), OF_ONE))
    assert [text.endswith("this one is of 4.5.0, which is untested") for text in untested] == [True] * (version == "4.5.0")


def test_every_processor_of_the_fixture_that_is_the_programs_own_is_seen(capture):
    own = [node.name for node in capture.nodes if isinstance(node, Processor) and node.program_class]
    assert own == ["dedup"]


def test_questions_without_a_foreign_key_may_be_in_any_partition(capture):
    """Unless a processor of the program is behind them, which may look at stream time."""
    assert topics_in_any_partition(capture) == {"many-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000027-topic"}
    assert topics_in_any_partition(altered(capture, "KTABLE-FK-JOIN-SUBSCRIPTION-PROCESSOR-0000000033", program_class=True)) == set()


@pytest.mark.parametrize(
    ("version", "caching", "said"), [("2.8.2", True, True), ("2.8.2", False, False), ("3.3.2", True, False), (None, None, True)]
)
def test_before_3_3_cached_sessions_have_the_time_of_a_flush(capture, version, caching, said):
    sessions = replace(store(capture, "sessions"), caching=caching)
    older = replace(capture, streams_version=version)
    flushed = "its sessions have the time of the record at which the cache was flushed"
    assert any(each.startswith(flushed) for each in remarks(doubts_about(older, sessions, {}))) == said


def untimed(capture, name):
    """Return a capture in which a store is one of ``Stores.persistentKeyValueStore``."""
    adapter = "org.apache.kafka.streams.state.internals.KeyValueToTimestampedKeyValueByteStoreAdapter"
    return altered(
        capture, name, layers=(*store(capture, name).layers[:-1], adapter, "org.apache.kafka.streams.state.internals.RocksDBStore")
    )


def test_cached_stores_without_timestamps_leave_a_doubt_about_these(sure):
    found = doubts_about(untimed(sure, "counts"), store(untimed(sure, "counts"), "counts"), PARTITIONS)
    said = "these stores keep no timestamps, only their caches do, until the application is restarted or they are full: counts"
    assert (remarks(found), found.of_order, lasting(found)) == ([said], (), [])
    uncached = altered(untimed(sure, "counts"), "counts", caching=False)
    assert remarks(doubts_about(uncached, store(uncached, "counts"), PARTITIONS)) == []
    assert remarks(doubts_about(sure, store(sure, "counts"), PARTITIONS)) == []


def test_what_others_compute_by_times_that_a_store_does_not_keep_is_open(sure):
    """A suppression behind such windows goes by them, and so may a processor of the program."""
    adapter = "org.apache.kafka.streams.state.internals.WindowToTimestampedWindowByteStoreAdapter"
    windows = altered(sure, "windows", layers=(*store(sure, "windows").layers[:-2], adapter))
    of_itself, behind = (doubts_about(windows, store(windows, name), OF_ONE) for name in ("windows", "final-store"))
    assert [reason.rpartition(": ")[2] for reason in remarks(of_itself)] == ["windows"]
    assert not any("keep no timestamps" in reason for reason in lasting(of_itself))
    assert any("keep no timestamps" in reason for reason in lasting(behind))
