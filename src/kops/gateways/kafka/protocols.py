"""Why brokers cannot be reached: a port that speaks another protocol looks like a broker that is down."""

from __future__ import annotations

from kops.config.connection import Connection
from kops.core.errors import Unreachable
from kops.gateways.kafka.translate import OF_TLS
from kops.gateways.machine.listening import ProbeResult, probe_address
from kops.gateways.threads import in_thread

PROBE_SECONDS = 5.0


def explained(error: Unreachable, connection: Connection) -> Unreachable:
    """Return a connection error that says what listens at each address, and which protocol that speaks."""
    seconds = min(connection.timeout, PROBE_SECONDS)
    probes = {server: in_thread(lambda server=server: probe_address(server, seconds)) for server in connection.bootstrap_servers}  # type: ignore[misc]
    found = {server: probe.result() for server, probe in probes.items()}
    if error.details.get("kafka_error") == OF_TLS and ProbeResult.NO_TLS not in found.values():
        return error  # both sides speak TLS: the reason is what it says
    said = "; ".join(one.value.format(server) for server, one in found.items())
    hint = error.hint
    if ProbeResult.TLS in found.values() and not connection.uses_tls:
        hint = f"security_protocol is {connection.security_protocol}; with TLS it is SSL or SASL_SSL"
    elif ProbeResult.NO_TLS in found.values() and connection.uses_tls:
        hint = f"security_protocol is {connection.security_protocol}; without TLS it is PLAINTEXT or SASL_PLAINTEXT"
    elif ProbeResult.TLS in found.values() or ProbeResult.NO_TLS in found.values():
        login = "a login (SASL)" if not connection.uses_sasl else "no login"
        hint = f"security_protocol is {connection.security_protocol}; the brokers may require {login}, or this is another service"
    return type(error)(f"{error.message}: {said}", hint=hint, **error.details)
