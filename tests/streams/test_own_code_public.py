"""`kops state rebuild --app` for applications that nobody here wrote, each beside a twin that was never broken.

They are Apache's own examples, and others written after what their documentation says that they do; see ``public_apps``.
"""

import json
import random
import socket
import struct

import pytest

from support import public_apps
from support.captured import built_agent
from support.own_apps import FIRST_MS
from support.programs import Record
from support.public_apps import BETWEEN, OUTPUT, TIMES, Public, Stores, apaches, give, plain, run_together

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

COUNT = 150
"""Records of a topic for one run."""
BEGIN_MS = FIRST_MS - 9 * 3_600_000
"""Early enough for records with minutes between them: none is of a time to come."""
AT_LEAST_ONCE, EXACTLY_ONCE = "at_least_once", "exactly_once_v2"


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


def records(make, *, seed=0, step=1000, count=COUNT, first=BEGIN_MS):
    """Return what gives the records of a run; the times continue from run to run.

    :param make: of a random generator and a number: key and value
    """

    def of_run(run):
        chosen = random.Random(100 * seed + run)
        numbers = range(run * count, (run + 1) * count)
        return [Record(*make(chosen, number), first + step * number + seed) for number in numbers]

    return of_run


def once(make, count, seed=0):
    """Give records to the first run only, before all others."""
    return lambda run: records(make, seed=seed, step=1, count=count, first=BEGIN_MS - 10_000)(0) if run == 0 else []


def number(value):
    return struct.pack(">i", value)


def long(value):
    return struct.pack(">q", value)


def of_users(make, users=12):
    return lambda chosen, number: (b"user-%d" % chosen.randrange(users), make(chosen, number))


WORDS = b"all streams lead to Kafka, hello Kafka streams, join Kafka summit! and so on".split()
LINES = of_users(lambda chosen, _: b" ".join(chosen.choices(WORDS, k=5)))
TOPICS = ("streams-plaintext-input=in", "streams-wordcount-output=out")
VIEWED = ("streams-pageview-input=in", "streams-userprofile-input=profiles")
SHORTLY_AFTER_1970 = {"windowstore.changelog.additional.retention.ms": str(100 * 365 * 86_400_000)}
"""The windows of page views have seven days and begin each second: only by the epoch there are few of them."""


def viewed(number):
    return 20_000 + 100 * number


def view(kind):
    def make(chosen, number):
        user = chosen.randrange(8)
        return b"%d" % user, json.dumps({**kind, "user": f"{user}", "page": f"page-{number}", "timestamp": viewed(number)}).encode()

    return make


def profile(kind):
    def make(chosen, number):
        region = chosen.choice(["north", "south", "west"])
        return b"%d" % number, json.dumps({**kind, "region": region, "timestamp": 10_000 + number}).encode()

    return make


def page_views(name, out, views, profiles):
    return Public(
        name,
        apaches(f"pageview.{name}", *VIEWED, f"{out}=out"),
        {"profiles": once(profile(profiles), 8, seed=1), "in": records(view(views))},
        settings=SHORTLY_AFTER_1970,
        doubtful=True,
    )


APPLICATIONS = [
    Public(
        "WordCountDemo", apaches("wordcount.WordCountDemo", *TOPICS, takes_file=True), {"in": records(LINES)}, partitions=2, open=[TIMES]
    ),
    Public(
        "WordCountProcessorDemo",
        apaches("wordcount.WordCountProcessorDemo", TOPICS[0], "streams-wordcount-processor-output=out", takes_file=True),
        {"in": records(LINES)},
        partitions=2,
        open=[OUTPUT],
    ),
    Public(
        "WordCountTransformerDemo",
        apaches("wordcount.WordCountTransformerDemo", TOPICS[0], "streams-wordcount-processor-output=out", takes_file=True),
        {"in": records(LINES)},
        partitions=2,
        open=[OUTPUT],
    ),
    Public(
        "TemperatureDemo",
        apaches("temperature.TemperatureDemo", "iot-temperature=in", "iot-temperature-max=out"),
        {"in": records(lambda chosen, _: (None, b"%d" % chosen.randrange(-20, 60)))},
    ),
    page_views("PageViewTypedDemo", "streams-pageviewstats-typed-output", {"_t": "pv"}, {"_t": "up"}),
    page_views("PageViewUntypedDemo", "streams-pageviewstats-untyped-output", {}, {}),
    Public("InScala", public_apps.in_scala, {"in": records(LINES)}, partitions=2, open=[TIMES]),
    Public(
        "SpringBoot",
        public_apps.spring_boots,
        {"in": records(lambda chosen, at: (number(chosen.randrange(4)), b"text %d" % at), step=100)},
        partitions=2,
    ),
    Public(
        "SpringCloudStream",
        public_apps.spring_clouds,
        {"in": records(LINES)},
        partitions=2,
        settings={"cache.max.bytes.buffering": "0"},  # of 3.3
        open=[TIMES],
    ),
    Public("Micronaut", public_apps.micronauts, {"in": records(LINES)}, partitions=2, open=[TIMES]),
    Public(
        "Quarkus",
        public_apps.quarkus,
        {
            "stations": once(lambda _, at: (number(at), b"station %d" % at), 9),
            "in": records(lambda chosen, at: (number(chosen.randrange(12)), b"%d;%.1f" % (at, chosen.uniform(-20, 40)))),
        },
        partitions=2,
        tables=("stations",),
        doubtful=True,
    ),
    Public(
        "Charts",
        public_apps.with_avro("Charts"),
        {
            "songs": once(lambda chosen, at: (long(at), b"%s,song %d" % (chosen.choice([b"punk", b"jazz"]), at)), 20, seed=1),
            "in": records(of_users(lambda chosen, _: b"%d,%d" % (chosen.randrange(20), chosen.randrange(20, 90)))),
        },
        doubtful=True,
    ),
    Public("Alerts", plain("Alerts"), {"in": records(of_users(lambda _, at: b"%d" % at, 40), step=60_000)}, partitions=2),
    Public(
        "Albums",
        plain("Albums"),
        {
            "albums": records(
                lambda chosen, at: (long(chosen.randrange(20)), b"rock,artist %d" % at if chosen.random() < 0.9 else None), seed=1
            ),
            "in": records(lambda chosen, at: (long(chosen.randrange(60)), b"%d,title %d,9.99" % (chosen.randrange(22), at))),
        },
        partitions=2,
        open=[TIMES, BETWEEN],
    ),
    Public("Once", plain("Once"), {"in": records(of_users(lambda chosen, _: b"event-%d" % chosen.randrange(30)))}, partitions=2),
    Public("Spending", plain("Spending"), {"in": records(of_users(lambda _, at: b"bought %d" % at, 40))}, partitions=2, open=[OUTPUT]),
    Public(
        "Clicks",
        plain("Clicks"),
        {
            "in": records(of_users(lambda _, at: b"seen %d" % at)),
            "clicks": records(of_users(lambda _, at: b"click %d" % at), seed=1, count=COUNT // 2, step=2000),
        },
        settings={"__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0"},
        partitions=2,
        doubtful=True,
    ),
    Public("Visits", plain("Visits"), {"in": records(of_users(lambda _, at: b"song %d" % at, 40), step=2000)}, partitions=2),
]
"""Apache's first; what the others are modelled on is stated where they are written."""


@pytest.fixture
def lives(cluster, prefix, tmp_path):
    """Make an application and its twin, and run both with a restart between."""

    def run(row, guarantee):
        broken, twin = public_apps.made(cluster, row, prefix, tmp_path, guarantee)
        for at in range(2):
            give(broken, at)
            run_together([broken, twin])
            if at == 0:
                public_apps.keep(broken)
        return broken, twin

    return run


@pytest.fixture
def taken():
    """A port that another process has, as the application does that runs beside."""
    with socket.create_server(("", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.long
@pytest.mark.parametrize("local_state", ["stale", "wiped"])
@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
@pytest.mark.parametrize("row", APPLICATIONS, ids=lambda row: row.name)
def test_it_is_rebuilt_and_goes_on_as_its_twin(lives, run_kops, cluster, tmp_path, taken, row, guarantee, local_state):
    """Stale: all records of the changelogs are lost, and local state is that of an earlier run; wiped: topics and local state are gone."""
    broken, twin = lives(row, guarantee)
    broken.port = taken  # which kops leaves alone, whenever it starts the program
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *broken.command).ok()
    stores = Stores(broken, capture)
    held, committed = stores.views(broken), broken.committed()
    stores.check(stores.views(twin), held)
    if local_state == "stale":
        for changelog in stores.changelogs:
            cluster.empty(changelog)
        public_apps.put_back(broken)
        how = ("--yes",)
    else:
        cluster.delete(*stores.changelogs)
        public_apps.wipe(broken)
        how = ("--write", "replace", "--confirm", *(stores.changelogs if len(stores.changelogs) == 1 else [broken.application]))
    accepted = ("--accept-doubtful",) if row.doubtful else ()
    run_kops("state", "rebuild", "--app", capture, *how, *accepted, "--wait-empty", "60s", "-B", cluster.servers).ok()
    stores.check(held, stores.views(broken))
    assert broken.committed() == committed
    broken.port = 0
    give(broken, 2)
    run_together([broken, twin])
    stores.check(stores.views(twin), stores.views(broken))
    assert broken.output() == twin.output()
    assert broken.committed() == twin.committed()


@pytest.mark.long
def test_what_has_no_stores_is_refused(run_kops, cluster, prefix, tmp_path):
    """Apache's PipeDemo, which copies a topic."""
    row = Public("PipeDemo", apaches("pipe.PipeDemo", "streams-plaintext-input=in", "streams-pipe-output=out"), {"in": records(LINES)})
    life = public_apps.Life(row, cluster, prefix, prefix, tmp_path, AT_LEAST_ONCE)
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *life.command).ok()
    refused = run_kops("state", "rebuild", "--app", capture, "-B", cluster.servers)
    assert (refused.code, refused.out) == (5, "")
    assert "can be rebuilt by its program: it has none" in refused.err
