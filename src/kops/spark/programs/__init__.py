"""Stores computed by the application's own program, a task of it in each of Spark's."""
