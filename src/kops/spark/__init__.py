"""The only importer of pyspark: sessions, sources and sinks at the edge, DataFrame to DataFrame in between."""
