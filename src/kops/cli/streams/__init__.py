"""``kops streams``."""
