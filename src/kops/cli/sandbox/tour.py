"""The steps of ``kops demo``: each announced in a sentence, with the kops commands as typed."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kops.cli.frame.session import Session
from kops.config.paths import directories
from kops.core.errors import OperationFailed
from kops.core.models import NewRecord
from kops.core.records.models import OffsetRange
from kops.gateways.machine.jars import jars_of, kafka_set
from kops.gateways.machine.processes import ProcessIdentity, stop
from kops.operations.engine.stable import wait_until_stable
from kops.operations.sandbox.example_application import Application, examples_directory, wait_until_processed

SANDBOX = "demo"
APPLICATION = "prices-app"
CHANGELOG = "prices-app-totals-changelog"
INPUTS = ("prices", "prices-app-totals-repartition")
TOTALS = "prices-totals"
PARTITIONS = "3"
_FOLDERS = {"XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state", "XDG_DATA_HOME": "data"}


def run_tour(cache: Path, guarantee: str) -> None:
    """Run the demo from the first step to the clean-up.

    :param cache: kops' cache: jars are shared, everything else is private to the demo
    :raises KopsError: when a step fails; everything is cleaned up in that case, too
    """
    started = time.monotonic()
    with _own_folder(cache) as folder:
        tour = Tour(folder, cache, guarantee)
        try:
            tour.run()
        finally:
            tour.clean_up()
    _say(f"Done in {time.monotonic() - started:.0f} s: Kafka, the application and their files have been removed.")


class Tour:
    def __init__(self, folder: Path, cache: Path, guarantee: str) -> None:
        self.guarantee = guarantee
        self.state_file = folder / "state.yaml"
        self.application = Application("PricesApplication", folder / "application", jars_of(kafka_set(), cache))
        self.process: ProcessIdentity | None = None
        self.session = Session({"context": SANDBOX})

    def run(self) -> None:
        self.prepare()
        self.feed_three_laptops()
        self.lose_the_state()
        self.bring_it_back()
        self.feed_the_fourth()

    def prepare(self) -> None:
        _say("1. A real Apache Kafka starts on this machine, in its own folder.")
        kops("sandbox", "up", "--name", SANDBOX)
        _say("2. The topics of the example are created: the plan is shown before it is applied.")
        kops("-c", SANDBOX, "topics", "create", "prices", TOTALS, "--partitions", PARTITIONS, "--yes")
        _say(f"3. The Kafka Streams application {APPLICATION} ({self.guarantee}) starts: its store `totals` sums prices by item.")
        source = examples_directory() / "prices"
        text = (source / "state.yaml").read_text(encoding="utf-8")
        self.state_file.write_text(text.replace("at_least_once", self.guarantee), encoding="utf-8")
        self.application.directory.mkdir()
        self.application.compile(source / "PricesApplication.java")
        self.start()

    def feed_three_laptops(self) -> None:
        _say("4. Three laptops at 2000 each, and a mouse, are sold. The total in the store's changelog:")
        self.feed(["laptop", "laptop", "laptop", "mouse"], first_id=1)
        self.expect_total(6000.0)
        self.expect_outputs([2000.0, 4000.0, 6000.0])

    def lose_the_state(self) -> None:
        _say("5. The accident: the application stops, its changelog is emptied, and its disk is lost.")
        self.stop()
        kops("-c", SANDBOX, "topics", "delete", CHANGELOG, "--confirm", CHANGELOG)
        kops("-c", SANDBOX, "topics", "create", CHANGELOG, "--partitions", PARTITIONS, "--compacted", "--yes")
        shutil.rmtree(self.application.state_directory)
        _say("6. kops compares the changelog with what the input implies, and exits with 1:")
        kops("-c", SANDBOX, "state", "verify", str(self.state_file), expect=1)

    def bring_it_back(self) -> None:
        _say("7. The state is rebuilt from the input, up to the offsets that the application has committed:")
        kops("-c", SANDBOX, "state", "rebuild", str(self.state_file), "--yes")
        _say("8. A second comparison finds no difference:")
        kops("-c", SANDBOX, "state", "verify", str(self.state_file))

    def feed_the_fourth(self) -> None:
        _say("9. The application starts again, restores the rebuilt state, and a fourth laptop is sold:")
        self.start()
        self.feed(["laptop"], first_id=5)
        self.expect_total(8000.0)
        self.expect_outputs([2000.0, 4000.0, 6000.0, 8000.0])
        _say(f"   {TOTALS} holds 2000, 4000, 6000, 8000 for the laptop: each once, none sent twice, none missing.")
        self.stop()
        _say("10. Everything that changed is in the journal, and can be undone with `kops undo`:")
        kops("journal", "list")

    def start(self) -> None:
        self.process = self.application.start(",".join(self.session.connection.bootstrap_servers), "--guarantee", self.guarantee)

    def stop(self) -> None:
        """Stop the application gracefully, so that it leaves its group."""
        if self.process is not None:
            stop(self.process)
            self.process = None

    def feed(self, items: Sequence[str], *, first_id: int) -> None:
        """Produce prices, and wait until the application has processed them."""
        records = [
            NewRecord(
                str(number).encode(), f'{{"id": {number}, "item": "{item}", "price": {25.5 if item == "mouse" else 2000.0}}}'.encode()
            )
            for number, item in enumerate(items, start=first_id)
        ]
        with self.session.permit.granted():
            self.session.kafka.produce("prices", records)
        wait_until_processed(self.session.kafka, APPLICATION, INPUTS)
        offsets = self.session.kafka.offsets
        written = [partition for found in offsets.partitions_of([CHANGELOG, TOTALS]).values() for partition in found]
        ends = {partition: bound.log_end_offset for partition, bound in offsets.bounds(written).items()}
        wait_until_stable(self.session, ends)  # commit markers are written after the offsets are committed

    def expect_total(self, total: float) -> None:
        """Show the store, and check the laptop total."""
        kops("-c", SANDBOX, "changelog", "inspect", CHANGELOG, "--key", "string", "--value", "double")
        found = self.laptops(CHANGELOG)[-1:]
        if found != [total]:
            raise OperationFailed(f"the laptop total is {found}, not {total}")

    def expect_outputs(self, totals: list[float]) -> None:
        """Check that the application sent exactly these laptop totals."""
        found = self.laptops(TOTALS)
        if found != totals:
            raise OperationFailed(f"{TOTALS} holds {found} for the laptop, not {totals}")

    def laptops(self, topic: str) -> list[float]:
        offsets = self.session.kafka.offsets
        bounds = offsets.bounds(offsets.partitions_of([topic])[topic])
        ranges = {partition: OffsetRange(bound.log_start_offset, bound.log_end_offset) for partition, bound in bounds.items()}
        batches = self.session.kafka.records.read(ranges)
        values = [record.value for batch in batches for record in batch if record.key == b"laptop" and record.value is not None]
        return [struct.unpack(">d", value)[0] for value in values]

    def clean_up(self) -> None:
        self.stop()
        kops("sandbox", "down", "--name", SANDBOX, "--delete", expect=None)


def kops(*arguments: str, expect: int | None = 0) -> None:
    """Print a command and run it in this process.

    :param expect: its exit code; None: any
    :raises OperationFailed: when it exits with another
    """
    from kops.cli.frame.main import main

    shown = shlex.join(arguments).replace(str(Path(tempfile.gettempdir())), "$TMPDIR")
    sys.stdout.write(f"   $ kops {shown}\n")
    sys.stdout.flush()
    code = main(arguments)
    if expect is not None and code != expect:
        raise OperationFailed(f"`kops {shown}` ended with exit code {code}, not {expect}", hint="see its error above")


@contextlib.contextmanager
def _own_folder(cache: Path) -> Iterator[Path]:
    """Give the demo its own configuration, journal and data."""
    before = dict(os.environ)
    folder = Path(tempfile.mkdtemp(prefix="kops-demo-"))
    try:
        for name in [name for name in os.environ if name.startswith("KOPS_") and name != "KOPS_JARS_DIR"]:
            del os.environ[name]
        os.environ.update({name: str(folder / part) for name, part in _FOLDERS.items()}, KOPS_CACHE_DIR=str(cache))
        assert directories(os.environ).state.is_relative_to(folder)  # noqa: S101 - never touch the user's journal
        yield folder
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def _say(sentence: str) -> None:
    sys.stdout.write(f"\n{sentence}\n")
    sys.stdout.flush()
