"""Stores that the application's own program computes, which a capture of it names."""
