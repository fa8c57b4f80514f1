"""``kops topics``."""
