"""Where replicas lie: reassignments, their throttle, elections of leaders."""
