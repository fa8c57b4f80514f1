"""Topics, archives and snapshots as DataFrames."""
