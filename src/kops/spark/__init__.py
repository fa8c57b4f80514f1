"""The only importer of pyspark: sources and sinks at the edge, DataFrame -> DataFrame in between."""
