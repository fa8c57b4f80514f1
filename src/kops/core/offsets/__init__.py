"""Offsets of groups: arithmetic, moves in columns, and Apache's CSV."""
