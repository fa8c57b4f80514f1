"""Contexts: paths, loading, precedence, secrets, and one connection translated for each client."""
