"""The public API for plugins, and the loader."""
