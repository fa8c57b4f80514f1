"""Kafka Streams applications: models, topics and topologies."""
