"""Findings about groups."""
