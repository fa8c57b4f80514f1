"""The only network code: Kafka, HTTP services and processes."""
