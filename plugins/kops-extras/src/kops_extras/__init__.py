"""Extras for kops: one plugin of each kind."""
