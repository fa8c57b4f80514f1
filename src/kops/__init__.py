"""kops: a command line for people who run Kafka."""

__version__ = "0.1.0"
