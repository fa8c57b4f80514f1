"""The safety protocol: plan, compare-and-set, journal, undo."""
