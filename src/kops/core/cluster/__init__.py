"""The cluster: models, health and settings."""
