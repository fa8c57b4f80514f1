"""A cluster as a folder of YAML files: export it, compare it with the cluster, apply it in one plan."""
