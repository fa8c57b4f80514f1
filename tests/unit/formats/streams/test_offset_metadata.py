"""Metadata of offsets. The texts are from TopicPartitionMetadata.encode of kafka-streams 4.3.0."""

import pytest

from kops.core.errors import UndecodableRecord
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.formats.streams import offset_metadata
from kops.formats.streams.offset_metadata import OffsetMetadata

GOLDEN = {
    "AgAAAAAAAACC": OffsetMetadata(130),
    "AgAAAAAAAACCAAAAAQAAAAN3aW4AAAAAAAAAfQ==": OffsetMetadata(130, {"win": 125}),
}


@pytest.mark.parametrize("text", GOLDEN)
def test_metadata_is_that_of_kafka_streams(text):
    assert offset_metadata.encode(GOLDEN[text]) == text
    assert offset_metadata.decode(text) == GOLDEN[text]
    assert offset_metadata.decode(text.rstrip("=")) == GOLDEN[text], "Java reads it without its padding too"
    assert is_streams_metadata(text)


def test_version_1_has_the_time_only():
    assert offset_metadata.decode("AQAAAAAAAACC") == OffsetMetadata(130)


def test_no_metadata_is_an_unknown_time_and_what_is_not_kafka_streams_is_refused():
    assert offset_metadata.decode("") == OffsetMetadata(-1)
    for text in ("my note", "ключ", "AwAAAAAAAACC", "AgAA", "AgAAAAAAAACCAAAAAQAAAAN3"):
        with pytest.raises(UndecodableRecord):
            offset_metadata.decode(text)
