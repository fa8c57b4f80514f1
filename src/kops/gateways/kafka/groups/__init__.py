"""Groups and committed offsets."""
