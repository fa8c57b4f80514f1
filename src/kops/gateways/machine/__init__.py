"""Java, jars, processes and private files of this machine."""
