"""Replay: sends whole records of a topic again."""
