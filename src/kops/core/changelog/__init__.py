"""Changelogs: filters, settings and statistics."""
