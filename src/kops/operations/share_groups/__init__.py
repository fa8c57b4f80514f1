"""Share groups (KIP-932): where they are, and moving or deleting that."""
