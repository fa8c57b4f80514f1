"""What the tests share, as pytest plugins."""
