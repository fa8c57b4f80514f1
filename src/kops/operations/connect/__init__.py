"""Kafka Connect: connectors looked at, validated, applied from files, told what to do, and their offsets moved."""
