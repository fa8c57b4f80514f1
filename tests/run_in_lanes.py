"""Runs tests in lanes, several pytests at once: each waits for more than half of its time, and there are two cores.

    python tests/run_in_lanes.py                # those on real parts
    python tests/run_in_lanes.py tests/unit     # those of some folders, in KOPS_TEST_LANES lanes

With KOPS_TEST_PART=1/3 only every third of the files on real parts is run: 2/3 and 3/3 run the others.

Each lane on real parts is a pytest with a Kafka of its own. It begins with folders of its own, whose tests share what is dear to start,
and continues with files that the others have not come to yet (``support/lanes.py``), so that all end together. Ends with the tests that
failed and why, with what was left out, and with 1 when a test failed.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
LANES = {
    "streams": ("streams",),
    "spark": ("spark", "replay", "examples"),
    "cluster": ("sandbox", "broker", "connect"),
}
"""What each begins with; what is named nowhere belongs to the last."""
SHARED = re.compile(r"\b(connect_workers|connectors|registry|shop)\b[,)]")
"""Fixtures that start JVMs of their own: files that name them belong to the last lane too, and come first there."""
LONG_FILES = re.compile(r"/test_(own_code|generated|from_archive|rebuild|killed|replace_killed|windows_resume|redrive|remembered)")
"""Files that take up to minutes: they come first in their lane, so that none is begun while the others end."""
AT_ONCE = int(os.environ.get("KOPS_TEST_LANES", "4"))
"""Lanes for the tests of folders that are named."""
PART = os.environ.get("KOPS_TEST_PART") or "1/1"
WAITS = ("support.mock_brokers", "support.faulty_connect")
"""What files import whose tests mostly wait: they come first, so that others run meanwhile."""
ELSEWHERE = ("unit", "benchmarks", "support")
LEFT_OUT = " left out "
OUTCOME = re.compile(r"\d+ (passed|failed|errors?)\b.* in \d+\.\d+s\b")
FAILED = ("FAILED ", "ERROR ")
NOTHING = "nothing: every part ran"


@dataclass
class Lane:
    """A pytest of its own, whose lines are passed on as they come."""

    name: str
    files: list[str]
    lines: list[str] = field(default_factory=list)
    code: int = 1

    def run(self, taken: str) -> None:
        """Run it to its end.

        :param taken: the folder in which the lanes tell each other which files they took
        """
        command = [sys.executable, "-m", "pytest", "-o", "console_output_style=classic", *self.files]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": {**os.environ, "KOPS_TEST_TAKEN": taken}}
        with subprocess.Popen(command, cwd=HERE.parent, **options) as process:
            assert process.stdout is not None
            for line in process.stdout:
                self.lines.append(line.rstrip("\n"))
                print(f"{self.name:<8}| {self.lines[-1]}", flush=True)
        self.code = process.returncode

    @property
    def failed(self) -> list[str]:
        """Return the tests that failed, with the first words of why, as the summary has them."""
        starts = [at for at, line in enumerate(self.lines) if "short test summary info" in line]
        found = [line for line in self.lines[starts[-1] :] if line.startswith(FAILED)] if starts else []
        return found or ([f"{self.name}: ended with {self.code} and no summary"] if self.code else [])

    @property
    def summary(self) -> str:
        """Return pytest's last line; clients of a broker that has ended may write after it."""
        return next((line.strip("= ") for line in reversed(self.lines) if OUTCOME.search(line)), "ended with no summary")

    @property
    def left_out(self) -> list[str]:
        """Return what its last section says."""
        starts = [at for at, line in enumerate(self.lines) if LEFT_OUT in line and line.startswith("==")]
        if not starts:
            return [f"{self.name}: ended before it could say what it left out"]
        said = itertools.takewhile(lambda line: not line.startswith("="), self.lines[starts[-1] + 1 :])
        return [line for line in said if line and line != NOTHING]


def lanes() -> list[Lane]:
    """Return the lanes, each with all files: its own, then those of the others from their ends."""
    folders = sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name not in ELSEWHERE)
    named = [folder for begins in LANES.values() for folder in begins]
    *_, last = LANES
    own = {name: [file for folder in begins for file in _files(HERE / folder)] for name, begins in LANES.items()}
    own[last] += [file for folder in folders if folder not in named for file in _files(HERE / folder)] + _files(HERE.parent / "plugins")
    shared = [file for files in own.values() for file in files if SHARED.search((HERE.parent / file).read_text(encoding="utf-8"))]
    own = {name: sorted((file for file in files if file not in shared), key=_takes_long) for name, files in own.items()}
    own[last] = [*shared, *own[last]]
    part = part_of({file for files in own.values() for file in files})
    own = {name: [file for file in files if file in part] for name, files in own.items()}
    return [Lane(name, [*own[name], *(file for other in own if other != name for file in reversed(own[other]))]) for name in own]


def lanes_of(folders: Sequence[Path]) -> list[Lane]:
    """Return lanes that share the tests of folders, each beginning at another place; what needs Kafka's jars comes last in all."""
    texts = {file: (HERE.parent / file).read_text(encoding="utf-8") for folder in folders for file in _files(folder.resolve())}
    late = [file for file, text in texts.items() if "kafka_jar_files" in text]
    waiting = [file for file, text in texts.items() if any(name in text for name in WAITS)]
    others = [file for file in texts if file not in late and file not in waiting]
    return [Lane(str(at + 1), [*_from(waiting, at), *_from(others, at), *late]) for at in range(AT_ONCE)]


def part_of(files: Iterable[str], part: str = PART) -> set[str]:
    """Return the files of a part: of neighbours, which take about as long, each part has some."""
    number, _, count = part.partition("/")
    return set(sorted(files)[int(number) - 1 :: int(count)])


def _takes_long(file: str) -> int:
    return 0 if LONG_FILES.search(file) else 1


def _from(files: Sequence[str], lane: int) -> list[str]:
    """Return the files, beginning with the share of a lane."""
    start = len(files) * lane // AT_ONCE
    return [*files[start:], *files[:start]]


def _files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(HERE.parent)) for file in folder.glob("**/test_*.py"))


def summed(left_out: Iterable[str]) -> list[str]:
    """Return what lanes left out, what they say of the same reason added up."""
    counts: dict[str, int] = {}
    for line in left_out:
        count, _, reason = line.partition(": ")
        number, _, tests = count.partition(" ")
        counted = number.isdecimal() and tests in ("test", "tests")
        counts[reason if counted else line] = counts.get(reason, 0) + int(number) if counted else 0
    return sorted(f"{count} test{'s' if count > 1 else ''}: {reason}" if count else reason for reason, count in counts.items())


def main(folders: Sequence[Path]) -> int:
    """Run all lanes and say what was left out."""
    every = lanes_of(folders) if folders else lanes()
    with tempfile.TemporaryDirectory(prefix="kops-tests-") as taken:
        threads = [threading.Thread(target=lane.run, args=(taken,)) for lane in every]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for lane in every:
        print(f"{lane.name}: {lane.summary}")
    print("\n".join(["left out:", *(summed(line for lane in every for line in lane.left_out) or [NOTHING])]))
    failed = [line for lane in every for line in lane.failed]
    print("\n".join(["failed:", *failed] if failed else ["all passed"]))
    return int(any(lane.code for lane in every))


if __name__ == "__main__":
    raise SystemExit(main([Path(given) for given in sys.argv[1:]]))
