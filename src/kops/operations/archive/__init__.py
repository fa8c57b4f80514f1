"""Archives of topics: their location, their manifest, and reading them back."""
