"""``kops context`` and ``kops doctor``."""
