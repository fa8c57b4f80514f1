"""``kops cluster``."""
