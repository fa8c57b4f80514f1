"""`kops diagnose`: one look at an incident. Nothing is changed, no group is joined."""
