"""One connection: everything that kops knows about a cluster, in kops' own terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
DEFAULT_TIMEOUT = 30.0


class Secret:
    """A value that is read only when a client is built, and never shown.

    Only :meth:`reveal` returns the value: not ``repr``, ``str``, ``format``, JSON or pickle.

    :param origin: where it comes from, for people: ``file /etc/kops/password``
    :param read: reads it; raises ConfigError naming the origin if it cannot be read
    """

    __slots__ = ("__read", "__value", "origin")

    def __init__(self, origin: str, read: Callable[[], str]) -> None:
        self.origin = origin
        self.__read = read
        self.__value: str | None = None

    def reveal(self) -> str:
        """Return the value, which is read only once.

        :raises kops.core.errors.ConfigError: if it cannot be read
        """
        if self.__value is None:
            self.__value = self.__read()
        return self.__value

    def __repr__(self) -> str:
        return f"(set, from {self.origin})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.origin == other.origin

    def __hash__(self) -> int:
        return hash(self.origin)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not serialised; build the client settings first and hand those over")


@dataclass(frozen=True)
class Oauth:
    """The source of OAUTHBEARER tokens: a token endpoint (client credentials), or a command that prints one.

    :param token_url: the OAuth token endpoint
    :param token_command: prints a token; run without a shell
    """

    token_url: str | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    scope: str | None = None
    token_command: str | None = None


@dataclass(frozen=True)
class Http:
    """TLS and login for Connect and the schema registry.

    :param ca_file: PEM; None: the public authorities
    """

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    connect_username: str | None = None
    connect_password: Secret | None = None
    registry_username: str | None = None
    registry_password: Secret | None = None


@dataclass(frozen=True)
class Spark:
    """Where Spark runs.

    :param master: ``local[*]``, ``spark://...``, ``yarn``, ``k8s://...``; None: local
    :param remote: a Spark Connect address, ``sc://...``
    :param jars_directory: jars of the Kafka source for machines without a network
    :param staging_directory: for intermediate files, reachable by all executors
    :param conf: additional Spark settings
    """

    master: str | None = None
    remote: str | None = None
    jars_directory: str | None = None
    staging_directory: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Connection:
    """A cluster, and how to connect to it and to the services around it.

    :param bootstrap_servers: empty if only Connect or the registry is known; see ``kops.config.load.require_brokers``
    :param name: of the context; empty if the brokers came only from a flag or the environment
    :param ca_file: PEM file of the authorities that sign the brokers' certificates; None: the system's
    :param certificate_file: PEM, our own certificate and its chain (mTLS)
    :param key_file: PEM, the private key of that certificate; may be the same file
    :param keystore_file: PKCS12 instead of certificate_file and key_file
    :param verify_hostname: whether a broker's certificate must carry its host name
    :param client: additional librdkafka properties, by their librdkafka names
    :param protected: every mutation needs the name typed or ``--confirm``
    :param read_only: every mutation is refused
    :param timeout: seconds that one request may take
    :param sources: where each value came from, by field name; ``client.<property>`` and ``spark.<field>`` for the nested ones
    :param warnings: what the user should know, for stderr: a secret that everybody can read, a setting that is not used
    """

    bootstrap_servers: tuple[str, ...]
    name: str = ""
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    username: str | None = None
    password: Secret | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: Secret | None = None
    keystore_file: str | None = None
    keystore_password: Secret | None = None
    verify_hostname: bool = True
    oauth: Oauth = Oauth()
    connect_urls: tuple[str, ...] = ()
    registry_url: str | None = None
    http: Http = Http()
    spark: Spark = Spark()
    client: Mapping[str, str] = field(default_factory=dict)
    protected: bool = False
    read_only: bool = False
    timeout: float = DEFAULT_TIMEOUT
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    warnings: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def label(self) -> str:
        """The context's name, otherwise the bootstrap servers, otherwise another address of this connection."""
        return self.name or ",".join(self.bootstrap_servers or self.connect_urls) or self.registry_url or ""

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")
