"""Consumer groups: models, history and lag."""
