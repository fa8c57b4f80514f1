"""Creates confluent-kafka clients for a connection, and waits for their futures.

librdkafka retries a connection for as long as it is asked to, and reports the reason only by callback. So every wait polls for those
reasons, and a rejected login or unreachable brokers end the wait with the reason.
"""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cached_property, partial
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakMethod

from kops.config.connection import Connection
from kops.core.errors import AuthenticationFailed, KopsError, TimedOut, Unreachable, answer_or_error
from kops.core.models import Broker, Cluster
from kops.core.permit import ALWAYS, Permit
from kops.core.topics.names import name_problem, topics_not_found
from kops.gateways.kafka.presence import LATE_SECONDS, Presence, answer, answering, connect
from kops.gateways.kafka.translate import OF_TLS, is_answer, is_authentication, is_lost, is_moving, is_tls, is_unreachable, translate
from kops.gateways.threads import in_thread

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient
    from kafka import KafkaAdminClient

K = TypeVar("K")
T = TypeVar("T")

POLL_SECONDS = 0.05
UNREACHABLE_GRACE_SECONDS = 2.0
"""A restarting broker is back within this time; a wrong address never is."""
REFRESH_SECONDS = 0.5
"""KRaft brokers name any broker as the controller, for some seconds even one that just died, and librdkafka waits for that one
until it reads new metadata. So a wait refreshes the metadata after this time, and again each time that its length has doubled."""
STEERS = 30
"""KRaft brokers name one at random; with two of three brokers down, one attempt in 190,000 finds only those."""
LATE = "_TRANSPORT"
"""What librdkafka reports of metadata that did not come in time, whether or not brokers accept connections."""
AGAIN_SECONDS = 5.0
"""A read that is not answered within this time is sent again over new connections; once those exist, later reads use both at once."""

KEPT = 4
"""Clients that were left, whose requests may still be waited for."""

_QUIET = logging.getLogger("kops.librdkafka")


class Client:
    """The clients of one cluster, created on first use."""

    def __init__(
        self, connection: Connection, *, verbose: bool = False, notify: Callable[[str], None] | None = None, permit: Permit = ALWAYS
    ) -> None:
        self.connection = connection
        self.permit = permit
        self.presence = Presence(_weakly(self._brokers), notify or _ignore, tls=connection.uses_tls)
        self._given: list[str] = []
        self._silent: list[str] = []
        self._earlier: list[AdminClient] = []
        self.timeout = connection.timeout
        self._verbose = verbose
        self._trouble: tuple[float, Any] | None = None
        self._fresh: AdminClient | None = None
        self._looking: AdminClient | None = None
        """Checks whether brokers that did not answer are still unreachable; see ``_end_without_hope``."""
        self._reading: Future[Any] | None = None
        self.electing: tuple[float, bool] | None = None
        """When, by the monotonic clock, and whether the controllers answered; see ``Wire.elects``."""
        self.asking_about_topics = RLock()
        """Held from a request about topics until its answer; see ``Offsets._asked``."""
        self.producer_at_rest: Producer | None = None
        """A producer whose records were all acknowledged: librdkafka takes 0.5 s until a new idempotent one may send."""
        self.second: KafkaAdminClient | None = None
        """kafka-python's client, for what librdkafka does not support; see ``admin``."""

        self.avoided: set[int] = set()
        """The brokers that it keeps away from; see ``Wire``."""

    def close(self) -> None:
        """Release connections and threads in a process that continues; librdkafka's end with the last reference."""
        if self.second is not None:
            with contextlib.suppress(Exception):  # all requests have been answered, so a failure to close does not matter
                self.second.close()
        self.second, self.avoided = None, set()
        self.__dict__.pop("admin", None)
        self._fresh = self._looking = self._trouble = self._reading = self.producer_at_rest = None
        self._earlier.clear()
        self._given = []

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Librdkafka's settings, secrets included: never to be shown."""
        from kops.config.librdkafka import librdkafka_settings

        return dict(librdkafka_settings(self.connection))

    @cached_property
    def admin(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        self._given = self._given or self.addresses()
        return self._permitted(self._make(AdminClient, {"bootstrap.servers": ",".join(self._given)}))

    def load(self) -> None:
        """Load every secret and certificate, as a client does that is made.

        :raises ConfigError: for one that librdkafka cannot use
        """
        from confluent_kafka.admin import AdminClient

        self._make(AdminClient, {"bootstrap.servers": ",".join(self.connection.bootstrap_servers)})

    def addresses(self) -> list[str]:
        """Return the addresses to connect to first: of the brokers that answer if others are known not to, or those given that do.

        That they accept connections is enough until something was not answered.
        """
        reached = partial(answer, tls=self.connection.uses_tls) if self.presence.doubted else connect
        if known := self.presence.known_addresses():
            return known
        addresses = answering(self.connection.bootstrap_servers, reached)
        if silent := [address for address in self.connection.bootstrap_servers if address not in addresses]:
            self.presence.doubt()
            if silent != self._silent:
                self._silent = silent
                self.presence.notify(f"no answer yet from {', '.join(silent)}: others are asked")
        return addresses

    def consumer(self, overrides: dict[str, Any]) -> Consumer:
        from confluent_kafka import Consumer

        return self._make(Consumer, overrides)

    def producer(self, overrides: dict[str, Any]) -> Producer:
        from confluent_kafka import Producer

        self.permit.require("a record")
        return self._make(Producer, overrides)

    def wait(
        self, future: Future[T], doing: str, *, timeout: float | None = None, again: Callable[[AdminClient], Future[T]] | None = None
    ) -> T:
        """Wait for an admin request.

        :param doing: what is being done, for the error: ``create topic orders``
        :param again: only for reads: sends the request once more, on a client of its own, when the first one is lost with its connection
            or not answered for some time, as it may be waiting for a broker that was killed. The first of the two answers counts.
            While the coordinator of a group is moving, or being created for the first group ever, the request is repeated as often
            as needed
        :param timeout: seconds; None: the connection's
        :raises KopsError: translated from Kafka's error
        """
        from confluent_kafka import KafkaException

        limit = self.timeout if timeout is None else timeout
        started = time.monotonic()
        refresh_after = REFRESH_SECONDS
        second: Future[T] | None = None
        self._doubt_trouble(future)
        while True:
            try:
                result = future.result(POLL_SECONDS)
            except FutureTimeout:
                self._hear()
                self._end_without_hope(doing)
                waited = time.monotonic() - started
                if again is not None and waited > (AGAIN_SECONDS if self._fresh is None else 0):
                    second, again = again(self.fresh_admin()), None
                if second is not None and second.done():
                    future, second = second, None
                    continue
                if waited > limit:
                    raise self._timed_out(doing, limit) from None
                if waited > refresh_after:
                    refresh_after *= 2
                    self.presence.doubt()
                    self._read_metadata()
            except KafkaException as error:
                if again is not None and is_moving(error.args[0]) and time.monotonic() - started < limit:
                    time.sleep(POLL_SECONDS)
                    future = again(self.admin)
                    continue
                if second is None and again is not None and is_lost(error.args[0]):
                    second, again = again(self.fresh_admin()), None
                if second is not None:
                    future, second = second, None
                    continue
                raise self._failed(error.args[0], doing) from error
            else:
                self._trouble = None
                return result

    def outcome(self, future: Future[T], doing: str, *, again: Callable[[AdminClient], Future[T]] | None = None) -> T | KopsError:
        """Wait for one of many requests and return its error as a value; unreachable brokers still raise."""
        return answer_or_error(lambda: self.wait(future, doing, again=again))

    def outcomes(self, futures: Mapping[str, Future[Any]], doing: str) -> dict[str, Any]:
        """Wait for the parts of a request, by name; see ``outcome``."""
        return {name: self.outcome(future, f"{doing} {name}") for name, future in futures.items()}

    def errors(self, futures: Mapping[str, Future[Any]], doing: str) -> dict[str, KopsError | None]:
        return {name: answer if isinstance(answer, KopsError) else None for name, answer in self.outcomes(futures, doing).items()}

    def describe_topics(self, names: Collection[str]) -> dict[str, Any]:
        """Return the description of each topic, or the error, in one request.

        :param names: at least one
        """
        from confluent_kafka import TopicCollection

        # librdkafka refuses the whole request for a name that is empty, and members of groups may claim to read any.
        possible = [name for name in names if not name_problem(name)]
        answers: dict[str, Any] = {name: topics_not_found([name]) for name in names if name_problem(name)}
        if possible:
            with self.asking_about_topics:
                wanted = TopicCollection(possible)
                futures = self.steered(lambda admin: admin.describe_topics(wanted, request_timeout=self.timeout))
                answers |= self.outcomes(futures, "describe topic")
        return answers

    def list_groups(self, group_id: str | None = None, *, timeout: float) -> list[Any]:
        """List the groups of every type, or one of them, with their members: by an old request, which confluent-kafka deprecates.

        :raises KafkaException: when the brokers do not answer in time
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return list(self.admin.list_groups(group_id, timeout=timeout))

    def settle(self) -> Any:
        """Wait for the metadata that a wait has requested, and return it; None if none was requested, or it cannot be read."""
        if self._reading is None:
            return None
        try:
            return self.wait(self._reading, "read the metadata")  # without requesting more metadata meanwhile
        except KopsError:  # the next request reports it
            return None
        finally:
            self._reading = None

    def metadata(self) -> Any:
        """Refresh the cluster's metadata, which is known to be out of date; see ``settle``."""
        self._read_metadata()
        return self.settle()

    def cluster(self) -> Cluster:
        """Return the cluster's id, controller and brokers.

        librdkafka sends this request to the controller, and KRaft brokers name any broker as that, even one that is down. So metadata is
        read where the answer is late: any broker answers that.

        :raises Unreachable: when no broker answers
        """
        asked = self.admin.describe_cluster(request_timeout=self.timeout)
        wait([asked], 0 if self.presence.doubted else LATE_SECONDS)
        metadata = None if asked.done() and asked.exception() is None else self._read_of_any()
        if metadata is None:
            found = self.wait(asked, "describe the cluster")
            brokers = [Broker(node.id, node.host, node.port, node.rack) for node in found.nodes]
            controller = found.controller.id if found.controller else None
        else:
            found = metadata
            brokers = [Broker(node.id, node.host, node.port, None) for node in found.brokers.values()]
            controller = None if found.controller_id < 0 else found.controller_id
        return Cluster(found.cluster_id or "unknown", controller, tuple(sorted(brokers, key=lambda broker: broker.id)))

    def _brokers(self) -> Sequence[Broker]:
        return self.cluster().brokers

    def _read_of_any(self) -> Any:
        """Return the metadata of all topics, read over new connections where some addresses do not answer: librdkafka waits for each."""
        self.presence.doubt()
        addresses = self.addresses()
        if not set(self._given) <= set(addresses):
            self._set_aside(self.__dict__.pop("admin"))
            self._given = addresses
        return self._read_any()

    def _read_any(self) -> Any:
        """Return the metadata of all topics, which any broker answers, as librdkafka has it; None if no answer came in time."""
        try:
            return self.wait(in_thread(partial(self.admin.list_topics, timeout=self.timeout)), "describe the cluster")
        except Unreachable as error:
            if error.details.get("kafka_error") != LATE:
                raise
            return None

    def steered(self, ask: Callable[[AdminClient], Mapping[K, Future[T]]]) -> Mapping[K, Future[T]]:
        """Send what any broker could answer; while it is not answered in time and brokers are down, send it to another one.

        librdkafka sends this to the controller; see :meth:`cluster`. Between a look and the request the metadata may name a dead one again.

        :param ask: sends it; only what reads
        """
        self._steer()
        futures, patience = ask(self.admin), LATE_SECONDS
        while patience <= self.timeout / 4 and self.late(futures.values(), patience) and self._steer():
            futures, patience = ask(self.admin), 2 * patience
        return futures

    def late(self, futures: Iterable[Future[Any]], seconds: float = LATE_SECONDS) -> bool:
        """Whether requests that were just sent are not answered in time: then it is looked which brokers answer."""
        late = bool(wait(list(futures), seconds).not_done)
        if late:
            self.presence.doubt()
        return late

    def _steer(self) -> bool:
        """If brokers are down, make librdkafka's metadata name a controller that is not; return whether some are."""
        down = self.presence.down()
        for _ in range(STEERS if down else 0):
            metadata = self._read_any()
            if metadata is None or metadata.controller_id not in down:
                break
        return bool(down)

    def _read_metadata(self) -> None:
        """Start to refresh the cluster's metadata: for all topics, because a request for one by its name may create it."""
        if self._reading is None or self._reading.done():
            self._reading = in_thread(partial(self.admin.list_topics, timeout=self.timeout))

    def fresh_admin(self) -> AdminClient:
        """Return the client for second requests, which has connections of its own."""
        if self._fresh is None:
            self._fresh = self._new_admin()
        return self._fresh

    def _new_admin(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        return self._permitted(self._make(AdminClient, {}))

    def _permitted(self, admin: AdminClient) -> AdminClient:
        return cast("AdminClient", PermittedAdmin(admin, self.permit))

    def _raise_trouble(self, doing: str) -> None:
        if self._trouble is not None:
            raise self._translated(self._trouble[1], doing)

    def _translated(self, error: Any, doing: str) -> KopsError:
        found = translate(error, doing, self.connection.bootstrap_servers)
        if is_tls(error):
            from kops.gateways.kafka.certificates import why_tls_fails

            if why := why_tls_fails(self.settings):
                return AuthenticationFailed(f"no TLS connection: {why}", hint=found.hint, **found.details)
        if isinstance(found, Unreachable) and (not isinstance(found, AuthenticationFailed) or found.details.get("kafka_error") == OF_TLS):
            from kops.gateways.kafka.protocols import explained

            return explained(found, self.connection)
        return found

    def _end_without_hope(self, doing: str) -> None:
        """Raise a rejected login, or that no broker answers, once a new client has confirmed it.

        The brokers may be back and slow to answer, which librdkafka never reports. A new client reports at once if they are not.
        """
        if self._trouble is None:
            return
        since, error = self._trouble
        if is_authentication(error) or self._looking is not None:
            self._raise_trouble(doing)
        if time.monotonic() - since > UNREACHABLE_GRACE_SECONDS:
            self._trouble = None
            self._looking = self._new_admin()
            self._looking.describe_cluster(request_timeout=self.timeout)

    def _leave(self) -> None:
        """Let later requests begin with the addresses of the connection.

        After metadata without a broker, as all are fenced for a moment when a cluster returns, librdkafka has none to ask, for good:
        https://github.com/confluentinc/librdkafka/issues/5301.
        """
        self._set_aside(self.__dict__.pop("admin", None), self._fresh)
        self._fresh, self._reading, self._given = None, None, []

    def _set_aside(self, *clients: AdminClient | None) -> None:
        self._earlier = [*self._earlier, *(client for client in clients if client is not None)][-KEPT:]

    def _doubt_trouble(self, future: Future[Any]) -> None:
        """Forget what was reported before this wait, and start a new client, which reports it again if it still holds.

        librdkafka reports once that all brokers are down, whenever it is next polled, and never that they are back.
        """
        self._looking = None
        if "admin" in self.__dict__ and not future.done():
            self.admin.poll(0)
        if self._trouble is not None:
            self._trouble = None
            if not future.done():
                self._fresh = None
                self.fresh_admin().describe_cluster(request_timeout=self.timeout)

    def _hear(self) -> None:
        """Poll librdkafka for its callbacks."""
        self.admin.poll(0)
        for client in (self._fresh, self._looking):
            if client is not None:
                client.poll(0)

    def _failed(self, error: Any, doing: str) -> KopsError:
        """Return why a request failed; raise the reported connection error if there is one.

        :raises KopsError: the connection error
        """
        self._hear()
        if is_lost(error):
            self._leave()
        if is_answer(error):
            self._trouble = None
        self._raise_trouble(doing)
        return self._translated(error, doing)

    def _on_error(self, error: Any) -> None:
        if is_authentication(error) or (is_unreachable(error) and self._trouble is None):
            self._trouble = (time.monotonic(), error)

    def _timed_out(self, doing: str, seconds: float) -> KopsError:
        self._leave()
        if self._trouble is not None:
            return self._translated(self._trouble[1], doing)
        return TimedOut(f"could not {doing} within {seconds:g} s", hint="raise --timeout, or see whether the brokers are overloaded")

    def _make(self, kind: Any, overrides: dict[str, Any]) -> Any:
        from confluent_kafka import KafkaException

        if not self._verbose:
            _QUIET.addHandler(logging.NullHandler())
            _QUIET.propagate = False
        servers = {} if "bootstrap.servers" in overrides else {"bootstrap.servers": ",".join(self.addresses())}
        settings = {"client.id": "kops", **self.settings, **servers, "error_cb": _weakly(self._on_error), **overrides}
        try:
            return kind(settings, logger=None if self._verbose else _QUIET)
        except KafkaException as error:
            raise translate(error.args[0], "make a Kafka client", self.connection.bootstrap_servers) from error


class PermittedAdmin:
    """An admin client that needs a permit for all that is neither named as a look nor a validation."""

    LOOKS = ("describe_", "list_", "poll")

    def __init__(self, admin: AdminClient, permit: Permit) -> None:
        self._admin, self._permit = admin, permit

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._admin, name)
        return method if name.startswith(self.LOOKS) else partial(self._ask, name, method)

    def _ask(self, name: str, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if not options.get("validate_only"):
            self._permit.require(name)
        return method(*arguments, **options)


def _ignore(_text: str) -> None: ...


def _weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a method without keeping its object alive.

    A librdkafka client that is part of a reference cycle is destroyed when Python collects garbage, in whichever thread that happens, and
    librdkafka aborts the process if it is one of its own threads.
    """
    known = WeakMethod(method)

    def call(*arguments: Any) -> Any:
        found = known()
        return None if found is None else found(*arguments)

    return call
