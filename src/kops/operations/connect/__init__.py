"""Kafka Connect: show, validate, apply and control connectors, and move their offsets."""
