"""Kafka Connect: models, declarations, causes and secrets."""
