"""``kops changelog``: what the changelog topics of Kafka Streams applications hold. Nothing here writes."""
