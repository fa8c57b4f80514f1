"""The difference to changelogs: staged, written and read back."""
