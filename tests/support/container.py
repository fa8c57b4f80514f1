"""Apache's own Kafka image through testcontainers, when a Docker engine answers; told what a sandbox's broker is told."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from kops.gateways.machine.jars import KAFKA_VERSION
from kops.sandbox import ports
from kops.sandbox.model import HOST, Node, Sandbox
from kops.sandbox.settings import server_settings

SECONDS = 120


def engine_answers() -> bool:
    """Tell whether there is a Docker engine."""
    try:
        import docker

        return bool(docker.from_env(timeout=5).ping())
    except Exception:  # no package, no socket, no permission: each means no engine
        return False


@contextlib.contextmanager
def kafka_container() -> Iterator[str]:
    """Run a broker in a container; yields its bootstrap servers."""
    from testcontainers.core.container import DockerContainer

    port, controller_port = ports.pick(2)
    node = Node(1, port, controller_port)
    sandbox = Sandbox(Path("/tmp/kops"), "container", KAFKA_VERSION, "", (node,))
    settings = server_settings(sandbox, node) | {"listeners": f"CLIENT://0.0.0.0:{port},CONTROLLER://{HOST}:{controller_port}"}
    container = DockerContainer(f"apache/kafka:{KAFKA_VERSION}").with_bind_ports(port, port)
    container.with_envs(**{f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in settings.items()})
    with container:
        deadline = time.monotonic() + SECONDS
        while "Kafka Server started" not in b"".join(container.get_logs()).decode(errors="replace"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the container did not start within {SECONDS} s")
            time.sleep(0.5)
        yield f"{HOST}:{port}"
