"""What lies in remote storage: which topics are asked about, and what is reported of those that were not answered."""

from types import SimpleNamespace

import pytest

from kops.core.errors import KopsError, OperationFailed, Refused
from kops.core.models import Bounds, Setting, TopicPartition
from kops.gateways.kafka.offsets import FoundOffset
from kops.gateways.kafka.translate import too_old
from kops.operations.offsets.tiers import fetched_from_remote, tier_columns

TIERED, PLAIN = TopicPartition("tiered", 0), TopicPartition("plain", 0)
ON, OFF = ({"remote.storage.enable": Setting("remote.storage.enable", value, "topic")} for value in ("true", "false"))
BOUNDS = {TIERED: Bounds(10, 100), PLAIN: Bounds(0, 50)}
HIDDEN = Refused("describe the settings of topic tiered: not allowed")


class Offsets:
    """Leaders that answer by the name of an offset, and what they were asked."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def by_spec(self, partitions, name):
        self.asked.append((name, list(partitions)))
        answer = self.answers[name]
        if isinstance(answer, KopsError):
            raise answer
        return {place: answer.get(place) for place in partitions}


def services(settings, **answers):
    offsets = Offsets({name.replace("_", "-"): answer for name, answer in answers.items()})
    topics = SimpleNamespace(settings_or_errors=lambda names: {name: settings[name] for name in names})
    return SimpleNamespace(kafka=SimpleNamespace(offsets=offsets, topics=topics))


def fetched(services, *moves, bounds=BOUNDS):
    return fetched_from_remote(services, lambda: moves, bounds)


def test_every_move_counts_what_the_local_log_no_longer_has():
    cluster = services({"tiered": ON, "plain": OFF}, earliest_local={TIERED: FoundOffset(60, -1)})
    said = fetched(cluster, (TIERED, 40), (TIERED, 55), (TIERED, 60), (PLAIN, 0))
    assert said == ("fetches 25 offsets from remote storage: the local logs no longer have them (tiered:0)",)
    assert cluster.kafka.offsets.asked == [("earliest-local", [TIERED])]


def test_an_offset_before_the_log_is_read_from_the_log_start():
    cluster = services({"tiered": ON}, earliest_local={TIERED: FoundOffset(60, -1)})
    assert fetched(cluster, (TIERED, 0)) == ("fetches 50 offsets from remote storage: the local logs no longer have them (tiered:0)",)


@pytest.mark.parametrize("moves", [[(PLAIN, 0)], [(TIERED, 100)], []])
def test_leaders_are_not_asked_without_need(moves):
    """Not about topics without remote storage, nor about moves to the log end."""
    cluster = services({"tiered": ON, "plain": OFF})
    assert fetched(cluster, *moves) == ()
    assert cluster.kafka.offsets.asked == []


def test_topics_whose_settings_are_hidden_are_asked_about():
    cluster = services({"tiered": HIDDEN}, earliest_local={TIERED: FoundOffset(60, -1)})
    assert fetched(cluster, (TIERED, 59)) == ("fetches 1 offset from remote storage: the local logs no longer have them (tiered:0)",)


def test_what_no_leader_answers_is_not_called_none():
    cluster = services({"tiered": ON}, earliest_local={TIERED: OperationFailed("broker 3 is down")})
    assert fetched(cluster, (TIERED, 40)) == ("how much is fetched from remote storage is not known: tiered:0: broker 3 is down",)


def test_brokers_that_are_too_old_are_named():
    old = too_old("find the latest-tiered offset", "ListOffsets", "3.6", 9)
    cluster = services({}, earliest_local={TIERED: FoundOffset(60, -1)}, latest_tiered=old)
    rows, problems = tier_columns(cluster, [TIERED, PLAIN], {"tiered": ON, "plain": OFF})
    assert rows == {TIERED: {"earliest_local_offset": 60, "latest_tiered_offset": None}}
    assert problems == ["cannot find the latest-tiered offset: this needs Kafka 3.9, and the brokers speak the protocol of 3.6"]


def test_brokers_without_the_request_have_nothing_remote_to_warn_about():
    old = too_old("find the earliest-local offset", "ListOffsets", "2.8", 8)
    assert fetched(services({"tiered": HIDDEN}, earliest_local=old), (TIERED, 40)) == ()
    assert tier_columns(services({}), [PLAIN], {"plain": OFF}) == ({}, [])
