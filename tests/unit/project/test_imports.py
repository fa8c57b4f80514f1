"""What a fresh interpreter imports for --help, --version and completion: click, and nothing heavy."""

import os
import subprocess
import sys

import pytest

from support.patience import HANG_SECONDS

HEAVY = {
    "confluent_kafka",
    "kafka",
    "requests",
    "tabulate",
    "wcwidth",
    "rich",
    "yaml",
    "pyspark",
    "pyarrow",
    "pandas",
    "numpy",
    "py4j",
    "fastavro",
    "google_crc32c",
    "tomlkit",
}

PROGRAM = """
import sys
from kops.cli.frame.main import main
code = main(sys.argv[1:])
sys.stdout.flush()
print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
sys.exit(code)
"""


def imported(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        env={**os.environ, **environment},
    )
    modules = set(done.stderr.split())
    assert "sys" in modules, done.stderr
    return done, modules


@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), (), ("completion", "bash"), ("topics", "--help"), ("topics", "create", "-h")]
)
def test_help_imports_nothing_heavy(arguments):
    done, modules = imported(*arguments)
    assert done.stdout or not arguments
    assert "click" in modules
    assert not {name.split(".")[0] for name in modules} & HEAVY


def test_a_listing_imports_neither_tabulate_nor_what_other_nouns_need(tmp_path):
    home = {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    done, modules = imported("plugins", "list", **home)
    assert done.returncode == 0
    assert not {"tabulate", "wcwidth"} & modules
    _, modules = imported("acls", "list", "--resource", "topic:a", "-B", "127.0.0.1:1", "--timeout", "0.1", **home)
    assert "kops.core.acls.models" in modules
    assert not {name for name in modules if name.startswith("kops.core.statefile")}


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_the_roots_help_imports_no_command(arguments):
    _, modules = imported(*arguments)
    assert not {name for name in modules if name.startswith(("kops.operations", "kops.gateways", "kops.config", "kops.cli.topics"))}


@pytest.mark.parametrize(
    ("words", "expected"), [("kops top", "topics"), ("kops topics cre", "create"), ("kops topics list --outp", "--output")]
)
def test_completion_imports_nothing_heavy(words, expected):
    environment = {"_KOPS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done, modules = imported(**environment)
    assert expected in done.stdout
    assert not {name.split(".")[0] for name in modules} & HEAVY
