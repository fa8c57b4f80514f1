"""Where replicas lie, and where they should: pure."""
