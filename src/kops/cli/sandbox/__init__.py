"""``kops sandbox`` and ``kops demo``."""
