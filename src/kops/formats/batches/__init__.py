"""Decodes, changes and encodes record batches (magic 2)."""
