"""Kafka Streams applications: found, looked at, and reset."""
