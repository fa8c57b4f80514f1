"""Subscriptions to the metrics of clients (KIP-714)."""
