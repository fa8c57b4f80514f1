"""Records of ``__consumer_offsets`` about a group of the streams protocol, as a broker of Kafka 4.3.1 wrote them."""

import pytest

from kops.core.errors import UndecodableRecord
from kops.core.streams.models import Task
from kops.formats.groups.streams_groups import StreamsKey, application_of, decode_key, decode_topology, key_prefixes

GROUP = "stmtry-streams-app"
MEMBER = "UPiTGeJRSFGqEw03OqmEgw"
GROUP_KEY = bytes.fromhex("0011001273746d7472792d73747265616d732d617070")
GROUP_VALUE = bytes.fromhex("00000000000a075bc626ded42aa702000400000000011902156e756d2e7374616e6462792e7265706c69636173023000")
MEMBER_KEY = bytes.fromhex("0013001273746d7472792d73747265616d732d61707000165550695447654a5253464771457730334f716d456777")
MEMBER_VALUE = bytes.fromhex(
    "000000001c74776f2d53747265616d5468726561642d322d636f6e73756d65720b2f3132372e302e302e31000493e000000000253639373064653130"
    "2d366239392d346137612d393730662d3862303531393031306438360109686f73742d74776f1b5a000100"
)
CURRENT_KEY = bytes.fromhex("0016001273746d7472792d73747265616d732d61707000165550695447654a5253464771457730334f716d456777")
CURRENT_VALUE = bytes.fromhex(
    "000000000006000000010104023002000000000100050200000006023102000000000100050200000006023202000000000100050200000006010101010100"
)
TOPOLOGY_KEY = bytes.fromhex("0017001273746d7472792d73747265616d732d617070")
TOPOLOGY_VALUE = bytes.fromhex(
    "000000000000040230021273746d7472792d73747265616d732d696e01022473746d7472792d73747265616d732d6170702d62792d6b65792d636861"
    "6e67656c6f6700000000ffff030f636c65616e75702e706f6c69637908636f6d7061637400176d6573736167652e74696d657374616d702e74797065"
    "0b43726561746554696d650000022673746d7472792d73747265616d732d6170702d76616c7565732d7265706172746974696f6e0101000231010102"
    "2673746d7472792d73747265616d732d6170702d62792d76616c75652d6368616e67656c6f6700000000ffff030f636c65616e75702e706f6c696379"
    "08636f6d7061637400176d6573736167652e74696d657374616d702e747970650b43726561746554696d65000001022673746d7472792d7374726561"
    "6d732d6170702d76616c7565732d7265706172746974696f6e00000000ffff050f636c65616e75702e706f6c6963790764656c65746500176d657373"
    "6167652e74696d657374616d702e747970650b43726561746554696d65000d726574656e74696f6e2e6d73032d31000e7365676d656e742e62797465"
    "73093532343238383030000001000232021573746d7472792d73747265616d732d757365727301022373746d7472792d73747265616d732d6170702d"
    "75736572732d6368616e67656c6f6700000000ffff030f636c65616e75702e706f6c69637908636f6d7061637400176d6573736167652e74696d6573"
    "74616d702e747970650b43726561746554696d6500000101010000"
)
RECORDS = [(GROUP_KEY, GROUP_VALUE), (MEMBER_KEY, MEMBER_VALUE), (CURRENT_KEY, CURRENT_VALUE), (TOPOLOGY_KEY, TOPOLOGY_VALUE)]


def test_keys_say_what_a_record_is_about():
    assert decode_key(MEMBER_KEY) == StreamsKey(19, GROUP, MEMBER)
    assert decode_key(TOPOLOGY_KEY) == StreamsKey(23, GROUP)
    assert all(key.startswith(key_prefixes(GROUP)) for key, _ in RECORDS)
    assert decode_key(b"\x00\x01\x00\x01g") is None, "a committed offset"


def test_the_topology_names_sources_changelogs_and_repartition_topics():
    parts = {part.subtopology: part for part in decode_topology(TOPOLOGY_VALUE)}
    assert parts["0"].source_topics == ("stmtry-streams-in",)
    assert parts["0"].changelog_topics == (f"{GROUP}-by-key-changelog",)
    assert parts["0"].repartition_sinks == parts["1"].repartition_topics == (f"{GROUP}-values-repartition",)
    assert parts["2"].changelog_topics == (f"{GROUP}-users-changelog",)


def test_a_group_is_what_its_last_records_say():
    found = application_of(GROUP, RECORDS)
    (member,) = found.members
    assert (member.client_id, member.host, member.application_server) == ("two-StreamThread-2-consumer", "127.0.0.1", "host-two:7002")
    assert member.active == tuple(Task(part, number) for part, number in [("0", 0), ("1", 0), ("2", 0)])
    assert found.complete
    gone = application_of(GROUP, [*RECORDS, (MEMBER_KEY, None), (CURRENT_KEY, None)])
    assert (gone.state, gone.members, gone.parts) == ("EMPTY", (), found.parts)
    assert application_of(GROUP, [*RECORDS, (GROUP_KEY, None)]) is None
    assert application_of("another", RECORDS) is None


@pytest.mark.parametrize("value", [TOPOLOGY_VALUE[:40], b"\x00\x01" + TOPOLOGY_VALUE[2:], b""])
def test_a_topology_that_is_cut_or_of_another_version_is_an_error(value):
    with pytest.raises(UndecodableRecord):
        decode_topology(value)
