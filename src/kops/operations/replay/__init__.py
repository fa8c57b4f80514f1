"""Replay: records of a topic sent again, whole."""
