"""What the tests themselves stand on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kops.config.paths import directories
from support.patience import HANG_SECONDS

TESTS = Path(__file__).parents[2]
ALONE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Without plugins that are installed: most of the time of such a small run would go into importing them."""


def test_nothing_of_the_person_is_read_or_written(home):
    found = directories(os.environ)
    assert {found.config.parents[1], found.state.parents[1], found.data.parents[1]} == {home}
    kept = {name for name in os.environ if name.startswith("KOPS_") and not name.startswith("KOPS_TEST_")}
    assert {"KOPS_CACHE_DIR"} <= kept <= {"KOPS_CACHE_DIR", "KOPS_JARS_DIR", "KOPS_MAVEN_REPOSITORY"}
    assert (os.environ["NO_COLOR"], os.environ["COLUMNS"], os.environ["TZ"]) == ("1", "80", "UTC")


def test_what_kops_exits_with_and_says(run_kops):
    version = run_kops("--version").ok()
    assert version.out.startswith("kops")
    wrong = run_kops("nonsense")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err


def test_kops_as_a_process(kops_process):
    out, _ = kops_process("--version").communicate(timeout=HANG_SECONDS)
    assert out.startswith("kops")


@pytest.mark.slow
def test_what_was_left_out_is_listed_at_the_end(tmp_path):
    (tmp_path / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(TESTS)!r})\npytest_plugins = ['support.skipped']\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_docker(n): pytest.skip('no Docker')\ndef test_done(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False, env=ALONE)
    assert done.stdout.splitlines()[-2] == "2 tests: no Docker", done.stdout


@pytest.mark.slow
def test_what_another_pytest_of_the_run_took_is_left_to_it(tmp_path):
    (tmp_path / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(TESTS)!r})\npytest_plugins = ['support.lanes']\n")
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    (tmp_path / "taken").mkdir()
    environment = {**ALONE, "KOPS_TEST_TAKEN": str(tmp_path / "taken")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    for files, ran in ((["test_b.py"], "2 passed"), (["test_a.py", "test_b.py"], "2 passed"), (["test_b.py", "test_a.py"], "no tests ran")):
        how = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "timeout": 300}
        done = subprocess.run([*command, *files], check=False, **how)
        assert (done.returncode, f" {ran} in " in done.stdout) == (0, True), done.stdout


@pytest.mark.slow
def test_long_variants_alone_are_found_in_the_files_of_a_lane(tmp_path):
    plugins = "['support.skipped', 'support.lanes']"
    (tmp_path / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(TESTS)!r})\npytest_plugins = {plugins}\n")
    (tmp_path / "test_it.py").write_text("import pytest\n@pytest.mark.long\ndef test_long(): pass\ndef test_short(): assert False\n")
    (tmp_path / "taken").mkdir()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)]
    environment = {**ALONE, "KOPS_TEST_TAKEN": str(tmp_path / "taken"), "KOPS_TEST_LONG": "only"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False, env=environment)
    assert (done.returncode, done.stdout.splitlines()[-2]) == (0, "1 test: others, which `make test` runs"), done.stdout
    assert "1 passed, 1 deselected" in done.stdout


@pytest.mark.slow
def test_a_quick_run_leaves_out_slow_tests(tmp_path):
    (tmp_path / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(TESTS)!r})\npytest_plugins = ['support.skipped']\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.fixture\ndef jdk(): ...\ndef test_java(jdk): assert False\n"
        "@pytest.mark.slow\ndef test_slow(): assert False\ndef test_done(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)]
    quick = {**ALONE, "KOPS_TEST_QUICK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False, env=quick)
    assert done.stdout.splitlines()[-2] == "2 tests: slow ones, which `make test` runs", done.stdout
