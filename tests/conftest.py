"""Fixtures for every test; each group of them is a module of ``support/``.

``broker``, ``own_broker``, ``topic``: a real Kafka (support/kafka.py). ``registry``: a real schema registry (support/registry.py).
``connect_workers``, ``connectors``: real Connect workers (support/connect.py). ``oracle``: the real Kafka Streams without a broker
(support/oracles.py). ``java_judge``: the Java classes that read what kops reads (support/java_judge.py). ``run_kops``, ``kops_process``:
the command line (support/command_line.py). Each test has a home folder of its own (support/isolation.py).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = [
    "support.skipped",  # first: others take names from it
    "support.isolation",
    "support.kafka",
    "support.command_line",
    "support.lanes",
    "support.apache_tools",
    "support.topics",
    "support.oracles",
    "support.java_judge",
    "support.registry",
    "support.connect",
    "support.postgresql",
    "support.shop",
    "support.spark",
    "support.spark_cluster",
]
