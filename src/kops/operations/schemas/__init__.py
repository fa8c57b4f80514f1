"""``kops schemas``."""
