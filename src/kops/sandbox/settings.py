"""The brokers' ``server.properties`` and logging, and a client's properties. Pure."""

from __future__ import annotations

from kops.sandbox.model import ACL, HOST, SASL_MECHANISM, USERNAME, Node, Sandbox

_INTERNAL_PARTITIONS = "4"

_LOG4J2 = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="ERROR" shutdownHook="disable">
  <Appenders>
    <RollingFile name="file" fileName="${{sys:kops.log}}" filePattern="${{sys:kops.log}}.%i">
      <PatternLayout pattern="%d{{ISO8601}} %-5p %c{{1}}: %m%n"/>
      <Policies><SizeBasedTriggeringPolicy size="10 MB"/></Policies>
      <DefaultRolloverStrategy max="3"/>
    </RollingFile>
  </Appenders>
  <Loggers>
    <Root level="INFO"><AppenderRef ref="file"/></Root>
{loggers}
  </Loggers>
</Configuration>
"""


def log4j2(*quiet: str) -> str:
    """Return the configuration of Log4j: one file, rotated by size.

    :param quiet: loggers that are limited to warnings
    """
    return _LOG4J2.format(loggers="\n".join(f'    <Logger name="{name}" level="WARN"/>' for name in quiet))


LOG4J2 = log4j2(
    "state.change.logger",
    "kafka.log",
    "org.apache.kafka.controller",
    "org.apache.kafka.storage.internals.log",
    "org.apache.kafka.common.config",
    "org.apache.kafka.common.utils",
)


def server_settings(sandbox: Sandbox, node: Node, *, password: str = "", store_password: str = "") -> dict[str, str]:
    """Return the ``server.properties`` of one broker.

    :param password: of the SCRAM user of clients and brokers
    :param store_password: of the broker's key store; also the key that signs delegation tokens
    """
    replicas = str(len(sandbox.nodes))
    in_sync = "2" if len(sandbox.nodes) > 1 else "1"
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(f"{each.id}@{HOST}:{each.controller_port}" for each in sandbox.nodes),
        "listeners": f"CLIENT://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
        "advertised.listeners": f"CLIENT://{HOST}:{node.port}",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(sandbox.folder(node) / "data"),
        "auto.create.topics.enable": "false",  # a producer that races topic creation would get one partition
        "num.partitions": "1",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "log.retention.ms": "-1",  # records with old timestamps, as tests and replays write them, must not vanish
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": _INTERNAL_PARTITIONS,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": _INTERNAL_PARTITIONS,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": _INTERNAL_PARTITIONS,
        "broker.heartbeat.interval.ms": "500",
        "broker.session.timeout.ms": "4000",  # a killed broker cannot come back before its old session ends
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),  # the default takes 128 MiB of the heap
    }
    if sandbox.racks:
        settings |= {"broker.rack": f"rack-{node.id}", "log.dirs": f"{settings['log.dirs']},{sandbox.folder(node) / 'data-2'}"}
    security = _secured(sandbox, password, store_password) if sandbox.secured else _PLAIN
    authorized = _AUTHORIZED | {"delegation.token.secret.key": store_password}
    return settings | security | (authorized if sandbox.security == ACL else {})


_AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{USERNAME};User:CN=localhost",  # clients and brokers; the controllers, by their certificate
}
_PLAIN = {"listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT"}


def _secured(sandbox: Sandbox, password: str, store_password: str) -> dict[str, str]:
    """Return the settings of SCRAM over TLS for clients and brokers, and of mutual TLS between the controllers.

    The controllers cannot use SCRAM: its credentials are in the log that they have yet to agree on.
    """
    return {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:SSL",
        "sasl.enabled.mechanisms": SASL_MECHANISM,
        "sasl.mechanism.inter.broker.protocol": SASL_MECHANISM,
        f"listener.name.client.{SASL_MECHANISM.lower()}.sasl.jaas.config": jaas(password),
        "listener.name.controller.ssl.client.auth": "required",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(sandbox.directory / "tls" / "broker.p12"),
        "ssl.keystore.password": store_password,
        "ssl.key.password": store_password,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(sandbox.ca_file),
    }


def client_settings(sandbox: Sandbox, password: str = "") -> dict[str, str]:
    """Return the ``client.properties`` for Apache's tools and Java applications."""
    settings = {"bootstrap.servers": sandbox.bootstrap_servers}
    if sandbox.secured:
        settings |= {"security.protocol": "SASL_SSL", "sasl.mechanism": SASL_MECHANISM, "sasl.jaas.config": jaas(password)}
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(sandbox.ca_file)}
    return settings


def jaas(password: str) -> str:
    """Return the JAAS line for SCRAM; kops generates the password, without quotes in it."""
    return f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{USERNAME}" password="{password}";'
