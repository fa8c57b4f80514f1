"""Bytes <-> values: primitive serdes, JSON, Kafka Streams keys. Pure."""
