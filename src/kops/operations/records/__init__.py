"""``kops records``."""
