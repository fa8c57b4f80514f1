"""Every test has a home of its own: nothing of the person's configuration is read, nothing of it is written.

Only the jars are shared with the person's kops, through ``KOPS_CACHE_DIR``, since they take a minute to fetch.
"""

import os
import shlex
import time
from itertools import count
from pathlib import Path
from weakref import ref

import pytest

from kops.config.paths import directories
from kops.core.cluster import health
from kops.gateways.kafka.client import Client
from support import class_archive
from support.skipped import LONG

# Thousands of short jobs: a third of the processors' time would go into compiling what runs once.
FOR_SHORT_RUNS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
JVMS = {"SPARK_SUBMIT_OPTS": f"-XX:-UseParallelGC {FOR_SHORT_RUNS}", "KAFKA_JVM_PERFORMANCE_OPTS": FOR_SHORT_RUNS}
# In the session that all tests of a process share, where half of the processors' time would go into compiling stages and expressions for a
# few rows. Spark interprets them instead. Compiled, as its users run it, runs the demo (``AS_USERS_DO``), and what `make test-long` runs.
STAGES = "" if os.environ.get(LONG) else "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
# That session loads thousands of classes that run once. With C1 alone the JVM keeps 48 MB for code and sweeps it all the time, a tenth
# of its work; with a bigger young generation it collects less; and Spark checks every step of every plan, which only its developers need.
LASTING = "-XX:ReservedCodeCacheSize=240m -Xmn256m -Dspark.sql.lightweightPlanChangeValidation=false"
KEPT = ("KOPS_CACHE_DIR", "KOPS_JARS_DIR", "KOPS_MAVEN_REPOSITORY")
FIXED = {"NO_COLOR": "1", "COLUMNS": "80", "LINES": "24", "TZ": "UTC"}
XDG = {"XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache", "XDG_DATA_HOME": "data"}


UNIT = Path(__file__).parents[1] / "unit"
OPENED = []
"""References to the clients that tests have opened and not closed yet."""


def pytest_configure() -> None:
    make = Client.__init__

    def make_known(self, *arguments, **options):
        make(self, *arguments, **options)
        OPENED.append(ref(self))

    Client.__init__ = make_known
    os.environ["KOPS_CACHE_DIR"] = str(directories(os.environ).cache)
    for name in list(os.environ):
        if name.startswith("KOPS_") and not name.startswith("KOPS_TEST_") and name not in KEPT:
            del os.environ[name]
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        os.environ.pop(name, None)
    os.environ.update({**FIXED, **JVMS, "SPARK_SUBMIT_OPTS": f"{JVMS['SPARK_SUBMIT_OPTS']} {STAGES} {LASTING}"})
    os.environ["KAFKA_JVM_PERFORMANCE_OPTS"] = shlex.join([*FOR_SHORT_RUNS.split(), *class_archive.options()])
    time.tzset()


@pytest.fixture(scope="session")
def homes(tmp_path_factory):
    """Make folders one after the other: pytest's own way to make one costs five times as much, and thousands of tests need one."""
    parent, numbers = tmp_path_factory.mktemp("homes"), count()

    def make():
        folder = parent / str(next(numbers))
        folder.mkdir()
        return folder

    return make


@pytest.fixture(autouse=True)
def home(homes, monkeypatch):
    """Give the test an empty home; return it."""
    folder = homes()
    monkeypatch.setenv("HOME", str(folder))
    for variable, name in XDG.items():
        monkeypatch.setenv(variable, str(folder / name))
    return folder


@pytest.fixture(autouse=True)
def roomy_disk(request, monkeypatch):
    """Find no disk nearly full, however full that of this machine is: real brokers stand on it. What is found on one is a unit test."""
    if UNIT not in request.path.parents:
        monkeypatch.setattr(health, "FULL_BELOW", 0)


@pytest.fixture(autouse=True)
def closed_clients():
    """Close what the test has opened: each client of kafka-python has a thread, and four of the 1,024 files that a shell allows."""
    before = len(OPENED)
    yield
    for client in filter(None, (opened() for opened in OPENED[before:])):
        client.close()
    del OPENED[before:]
