"""Brokers: settings, log directories, and what leaves them."""
