"""``kops sandbox`` and the demo's application."""
