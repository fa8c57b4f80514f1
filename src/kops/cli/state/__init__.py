"""``kops state``."""
