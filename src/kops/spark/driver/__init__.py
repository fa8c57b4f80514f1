"""The Spark session: its JVM, its workers and what it reports."""
