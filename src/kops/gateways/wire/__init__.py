"""Kafka's protocol through kafka-python: whole record batches and transactions, for tasks too."""
