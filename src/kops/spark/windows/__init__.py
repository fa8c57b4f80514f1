"""How Kafka Streams makes windows and sessions: their keys, stream time, and what each record does to them."""
