"""What stores should hold, computed by Spark SQL."""
