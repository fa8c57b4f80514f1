"""Kafka Connect, by its REST interface."""

from kops.gateways.connect.client import Connect

__all__ = ["Connect"]
