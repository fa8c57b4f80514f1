"""Archives of topics: their place, their manifest, and reading them back."""
