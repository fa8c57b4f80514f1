"""Windows and sessions as in Kafka Streams: their keys, stream time, and the effect of each record."""
