"""``kops context``."""
