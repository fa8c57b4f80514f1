"""Kafka Streams applications: found, inspected, and reset."""
