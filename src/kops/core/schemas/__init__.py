"""Schemas: models and compatibility."""
