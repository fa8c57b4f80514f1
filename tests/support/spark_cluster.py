"""Spark elsewhere: a standalone cluster whose Python has no kops, from PySpark's own jars."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

from kops.config.paths import directories
from kops.gateways.machine.jars import jars_of, spark_kafka_set
from kops.spark.driver.launch import FOR_SQL, JVM_OPTIONS
from support.isolation import FOR_SHORT_RUNS, JVMS
from support.patience import HANG_SECONDS

HOME = Path(pyspark.__file__).parent
SMALL = ("-Xmx256m", *FOR_SHORT_RUNS.split())


def wait_for(file: Path, pattern: str) -> re.Match[str]:
    """Wait until the log of a process says something."""
    deadline = time.monotonic() + HANG_SECONDS
    while time.monotonic() < deadline:
        found = re.search(pattern, file.read_text(errors="replace")) if file.exists() else None
        if found:
            return found
        time.sleep(0.1)
    pytest.fail(f"{file.name} does not say {pattern}: {file.read_text(errors='replace')[-2000:]}")


@pytest.fixture
def python_without_kops(tmp_path):
    """A Python that has all that kops needs, and not kops."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for installed in Path(pyspark.__file__).parents[1].iterdir():
        if "kops" not in installed.name:
            (packages / installed.name).symlink_to(installed)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys._base_executable} -S "$@"\n')
    python.chmod(0o755)
    answer = subprocess.run(
        [python, "-c", "import pyarrow, confluent_kafka, kops"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert "No module named 'kops'" in answer.stderr
    return python


@pytest.fixture
def start_java(jdk, tmp_path, python_without_kops):
    """Run a main class of Spark, its log in a file; ended with the test. Its Python has no kops."""
    environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.13", "PYSPARK_PYTHON": str(python_without_kops)}
    environment.pop("PYTHONPATH", None)
    processes = []

    def start(name: str, main_class: str, *arguments: str, options: tuple[str, ...] = SMALL, jars: str = "") -> Path:
        log = tmp_path / f"{name}.log"
        command = [str(jdk.java), "-cp", f"{HOME}/jars/*{jars}", *options, f"org.apache.spark.{main_class}", *arguments]
        with log.open("wb") as output:
            processes.append(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=tmp_path))
        return log

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def spark_cluster(start_java, tmp_path):
    """The address of the master of two workers, all on free ports."""
    host = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    master = wait_for(start_java("master", "deploy.master.Master", *host), r"Starting Spark master at (spark://\S+)")[1]
    for name in ("worker-1", "worker-2"):
        work = ("--cores", "1", "--memory", "700m", "--work-dir", str(tmp_path / name))
        log = start_java(name, "deploy.worker.Worker", *work, *host, master)
        wait_for(log, "Successfully registered with master")
    return master


@pytest.fixture
def kafka_source():
    """The jars of Spark's Kafka source, as an addition to a class path."""
    jars = jars_of(spark_kafka_set(), directories(os.environ).cache)
    return "".join(f"{os.pathsep}{jar}" for jar in jars)


@pytest.fixture
def connect_server(start_java, kafka_source):
    """The address of a Spark Connect server, with Spark's Kafka source."""
    pytest.importorskip("grpc", reason="pip install 'pyspark[connect]'")
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
    }
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    main_class = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
    arguments = ("--master", "local[2]", *settings, *main_class)
    options = (*JVM_OPTIONS, *FOR_SQL, *JVMS["SPARK_SUBMIT_OPTS"].split())
    log = start_java("connect", "deploy.SparkSubmit", *arguments, options=options, jars=kafka_source)
    return f"sc://127.0.0.1:{wait_for(log, r'Spark Connect server started at: [^:]*:([0-9]+)')[1]}"
