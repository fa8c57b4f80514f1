"""What decides whether a store can be computed as the application held it: statements, settings, witnesses, runs of the program."""
