"""``kops groups``."""
