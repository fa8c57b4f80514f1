"""One renderer: table, json, yaml, csv, name; progress on stderr."""
