"""Topics: declarations, settings, names and warnings."""
