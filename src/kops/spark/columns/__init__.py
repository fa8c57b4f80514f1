"""What stores should hold, computed in tasks on Arrow columns."""
