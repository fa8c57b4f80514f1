"""Replays and redrives in Spark's tasks."""
