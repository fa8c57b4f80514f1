"""``kops replay``."""
