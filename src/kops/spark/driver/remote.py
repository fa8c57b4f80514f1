"""A session of Spark Connect (``sc://host:port``): the driver, its memory and the Python of its tasks are the server's.

The kops modules that tasks import are sent along. Spark's Kafka source cannot be: it registers settings with its JVM, so the source of a
second session no longer loads. It must be installed on the server.
"""

from __future__ import annotations

import atexit
import shutil
import socket
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import kops
from kops.core.errors import MissingRequirement, Refused, Unreachable, UsageProblem
from kops.core.extras import CONNECT, how_to_add, needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


DEFAULT_PORT = 15002
_PATIENCE_SECONDS = 10.0


def check_url(url: str) -> None:
    """Reject an address with a token: addresses appear in plans, in the journal and in ``ps``.

    :raises UsageProblem: stating where a token belongs
    """
    if ";token=" in url:
        raise UsageProblem(
            "the address of Spark Connect carries a token", hint="leave it out and put the token into SPARK_CONNECT_AUTHENTICATE_TOKEN"
        )


def connect(url: str, settings: Mapping[str, str]) -> SparkSession:
    """Return a new session on a Spark Connect server.

    :param settings: those that can be set per session are set; the others are up to whoever starts the server
    :raises Unreachable: when nothing listens there; Spark's own client would retry for ten minutes
    :raises MissingRequirement: when this Python lacks what Spark Connect's client imports, or the server lacks Spark's Kafka source
    :raises Refused: when the server may run a task twice at a time
    """
    needs(CONNECT, "Spark Connect needs")
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname or "", address.port or DEFAULT_PORT), _PATIENCE_SECONDS).close()
    except OSError as error:
        raise Unreachable(
            f"no Spark Connect server answers at {url}: {error}", hint="check the address; the port is 15002 by default"
        ) from error
    try:
        from pyspark.sql import SparkSession

        session = SparkSession.builder.remote(url).getOrCreate()
    except ImportError as wrong:  # PySparkImportError, a subclass, also reports a release that is too old
        raise MissingRequirement(f"Spark Connect cannot use the Python packages here: {wrong}", hint=how_to_add(CONNECT)) from wrong
    if str(session.conf.get("spark.speculation", "false")) == "true":
        raise Refused(
            f"Spark at {url} runs slow tasks twice at a time, which would write records twice",
            hint="start the server with spark.speculation=false",
        )
    for key, value in settings.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    _require_kafka(session, url)
    return session


def _require_kafka(session: SparkSession, url: str) -> None:
    try:
        session.read.format("kafka").load().schema  # noqa: B018 - asking for it makes the server look
    except Exception as error:  # if the source is installed, it complains about missing options
        if "find data source" in str(error):
            package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{session.version}"
            raise MissingRequirement(
                f"the Spark Connect server at {url} has no Kafka source", hint=f"start it with --packages {package}"
            ) from error


def is_connected(session: Any) -> bool:
    """Whether a session is one of Spark Connect, whose tasks may run anywhere."""
    return type(session).__module__.startswith("pyspark.sql.connect")


_PARTS = ("core", "formats", "plugins", "config", "gateways/wire", "gateways/machine", "gateways/registry", "spark")
_SMALL = ("javaproperties",)
_FILES = ("__init__.py", "gateways/__init__.py", "gateways/http.py", "gateways/threads.py")


def ship_kops(session: SparkSession) -> None:
    """Send the modules that tasks import, as a zip that Python imports from."""
    package = Path(kops.__file__).parent
    folder = Path(tempfile.mkdtemp(prefix="kops-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # workers fetch it for as long as the session lives
    archive = folder / "kops.zip"
    with zipfile.ZipFile(archive, "w") as content:
        for name in _FILES:
            content.write(package / name, f"kops/{name}")
        for part in (*(package / part for part in _PARTS), *_packages()):
            above = package.parent if part.is_relative_to(package) else part.parent
            for file in sorted(part.rglob("*.py")):
                content.write(file, file.relative_to(above))
    session.addArtifacts(str(archive), pyfile=True)


def _packages() -> Iterator[Path]:
    """Yield the folders of packages of Python alone, which go along so that they need not be installed."""
    for name in _SMALL:
        found = find_spec(name)
        if found is not None and found.origin is not None:
            yield Path(found.origin).parent
