"""``kops diagnose``: one look at an incident. It changes nothing and joins no group."""
