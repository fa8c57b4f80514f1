"""The few unit tests that ask Java come last: in a run from nothing its jars are being fetched meanwhile."""

from pathlib import Path

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: HERE in item.path.parents and "kafka_jar_files" in item.fixturenames)
