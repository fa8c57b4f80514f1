"""How Spark's JVM starts, and its class archive: made by a run that computed something, taken over by the next one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kops.core.errors import OperationFailed
from kops.spark.driver import launch
from kops.spark.driver.launch import Jvm, launch_jvm
from support.patience import HANG_SECONDS
from support.processes import wait_until_gone

CLASS_PATH = ["/jars/spark.jar"]


def started(folder):
    options, leaves = launch._archive_options(folder, "java", CLASS_PATH)
    return options, Jvm(None, 0, "", leaves)


def written(option):
    """What the JVM does when it ends: it writes the archive where the folder is there."""
    file = Path(option.partition("=")[2])
    file.write_text("classes")
    os.utime(file, (time.time() - 60, time.time() - 60))


def test_what_a_used_jvm_leaves_is_taken_over(tmp_path):
    (option,), jvm = started(tmp_path)
    jvm.is_used()
    jvm.is_used()
    written(option)
    options, later = started(tmp_path)
    (archive,) = tmp_path.iterdir()
    assert options == [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]
    assert archive.read_text() == "classes"
    assert later.leaves is None


def test_a_jvm_that_was_asked_for_nothing_leaves_no_archive(tmp_path):
    (option,), _ = started(tmp_path)
    assert option.startswith("-XX:ArchiveClassesAtExit=")
    assert not list(tmp_path.iterdir()), "the JVM has no folder to write to"
    assert started(tmp_path)[0] == [option]


def test_one_jvm_at_a_time_archives_until_it_is_taken_for_killed(tmp_path):
    (option,), jvm = started(tmp_path)
    jvm.is_used()
    assert started(tmp_path)[0] == []
    os.utime(jvm.leaves, (time.time() - 2 * launch._FORGOTTEN_SECONDS,) * 2)
    assert started(tmp_path)[0] == [option]


def test_an_archive_that_is_still_written_is_left_alone(tmp_path):
    (option,), jvm = started(tmp_path)
    jvm.is_used()
    written(option)
    os.utime(jvm.leaves / launch._CLASSES)
    assert started(tmp_path)[0] == []
    assert (jvm.leaves / launch._CLASSES).is_file()


def test_jvm_that_only_runs_tasks_has_an_archive_of_its_own(tmp_path):
    (option,), jvm = started(tmp_path)
    jvm.is_used()
    written(option)
    assert started(tmp_path)[0][0].startswith("-XX:SharedArchiveFile=")
    (other,), _ = launch._archive_options(tmp_path, "java", CLASS_PATH, "tasks")
    assert other.startswith("-XX:ArchiveClassesAtExit=")


def test_settings_lie_in_the_private_folder_and_nobody_else_reads_them(tmp_path):
    """A kops that is killed while the JVM starts leaves them there, where the next one deletes them."""
    private, java = tmp_path / "private", tmp_path / "java"
    private.mkdir()
    java.write_text(f"#!/bin/sh\nls -l {private} > {tmp_path}/seen\ncat {private}/*.properties >> {tmp_path}/seen\nexit 1\n")
    java.chmod(0o700)
    with pytest.raises(OperationFailed):
        launch_jvm(str(java), {"spark.secret": "x"}, jars=(), archives=None, private=private, memory="1g", environment={})
    seen = (tmp_path / "seen").read_text()
    assert "-rw------- " in seen
    assert "spark.secret x" in seen
    assert not list(private.iterdir())


def test_a_jvm_that_is_still_starting_ends_with_kops(tmp_path):
    java, started, left = tmp_path / "java", tmp_path / "started", tmp_path / "left"
    left.mkdir()
    java.write_text(f"#!/bin/sh\necho $$ > {started}.new\nmv {started}.new {started}\nexec sleep 60\n")
    java.chmod(0o700)
    program = f"""
import os, threading, time, types
from kops.spark.driver import launch
waiting = threading.Event()
launch.time = types.SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: (waiting.set(), time.sleep(seconds)))
given = dict(jars=(), archives=None, private=None, memory="1g", environment={{}})
threading.Thread(target=launch.launch_jvm, args=({str(java)!r}, {{}}), kwargs=given, daemon=True).start()
assert waiting.wait(60)
while not os.path.exists({str(started)!r}):
    time.sleep(0.01)
"""
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(left)}, check=True, timeout=HANG_SECONDS)
    wait_until_gone({int(started.read_text())})
    assert not list(left.iterdir())
