"""The few unit tests that ask Java come last: in a run from nothing its jars are being fetched meanwhile."""

from pathlib import Path

from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent

# No test fails for the time that a busy machine takes. Half of the usual examples: every run draws others.
settings.register_profile("kops", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kops")


def pytest_collection_modifyitems(items):
    """Move them; where lanes share the tests, items are files at first, which have no fixtures."""
    items.sort(key=lambda item: HERE in item.path.parents and "kafka_jar_files" in getattr(item, "fixturenames", ()))
