"""What programs rely on: stdout is data, errors are on stderr, JSON keys and exit codes."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from support.patience import HANG_SECONDS

ERROR_KEYS = {"code", "message", "exit_code"}


def test_an_error_for_people_is_a_line_and_a_hint(run_kops):
    done = run_kops("journal", "show", "nothing")
    assert (done.code, done.out) == (1, "")
    assert done.err == "kops: error: no journal entry nothing\nhint: `kops journal list` shows them\n"


def test_an_error_for_programs_is_an_envelope_on_stderr(run_kops):
    done = run_kops("journal", "show", "nothing", "-o", "json")
    assert (done.code, done.out) == (1, "")
    assert json.loads(done.err) == {
        "version": 1,
        "status": "failed",
        "items": [],
        "errors": [{"code": "not_found", "message": "no journal entry nothing", "exit_code": 1, "hint": "`kops journal list` shows them"}],
    }


@pytest.mark.parametrize(
    ("arguments", "code", "slug"),
    [
        (("journal", "show", "x"), 1, "not_found"),
        (("topics", "list", "--nonsense"), 2, "usage"),
        (("topics", "create"), 2, "usage"),
        (("topics", "create", "a b", "-B", "127.0.0.1:1"), 2, "usage"),
        (("topics", "list"), 2, "configuration"),
        (("topics", "list", "-c", "nowhere"), 2, None),
        (("topics", "list", "-B", "127.0.0.1:1"), 3, "unreachable"),
        (("topics", "list", "--timeout", "0"), 2, "usage"),
        (("apply", "/nowhere/plan.json"), 2, "usage"),
        (("nonsense",), 2, "usage"),
        (("-o", "xml", "topics", "list"), 2, "usage"),
    ],
)
def test_exit_codes(run_kops, arguments, code, slug):
    done = run_kops(*arguments, "-o", "json")
    assert (done.code, done.out) == (code, "")
    error = json.loads(done.err)["errors"][0]
    assert set(error) >= ERROR_KEYS
    assert error["exit_code"] == code
    assert slug in (None, error["code"])


def test_a_bug_says_how_to_report_it_and_debug_shows_where(run_kops, monkeypatch):
    monkeypatch.setattr("kops.operations.protocol.journal.Journal.entries", lambda *_: 1 // 0)
    done = run_kops("journal", "list")
    assert done.code == 1
    assert "kops: error: bug: ZeroDivisionError" in done.err
    assert "--debug" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in run_kops("journal", "list", "--debug").err
    monkeypatch.setenv("KOPS_DEBUG", "1")
    assert "Traceback" in run_kops("journal", "list").err


@pytest.mark.broker
def test_the_envelope_of_a_mutation(configured, run_kops, unique):
    name = unique()
    done = run_kops("topics", "create", name, "--yes", "-o", "json").ok()
    assert set(done.json) == {"version", "status", "items", "errors", "journal_id"}
    assert set(done.json["items"][0]) == {"target", "status", "value"}
    dry = run_kops("topics", "delete", name, "--dry-run", "-o", "json").ok().json
    assert dry["version"] == 1
    assert (dry["severity"], dry["confirm"]) == ("severe", name)
    done = run_kops("topics", "delete", name, "--confirm", name, "-o", "yaml").ok()
    import yaml

    assert yaml.safe_load(done.out)["status"] == "done"
    assert name in done.err  # the plan was shown, beside the data


@pytest.mark.broker
def test_quiet_leaves_data_and_errors(configured, run_kops, unique):
    name = unique()
    created = run_kops("topics", "create", name, "--yes", "-q").ok()
    assert created.err == ""
    refused = run_kops("topics", "delete", name, "-q")
    assert refused.code == 5
    assert refused.err.startswith("kops: error: there is no terminal to ask on\nhint: ")
    assert run_kops("topics", "delete", name, "-q", "--confirm", name, "-o", "name").ok().out == f"{name}\n"


@pytest.mark.broker
@pytest.mark.parametrize("output_format", ["table", "json", "csv", "name", "yaml"])
def test_a_reader_that_wants_the_first_line_only(configured, topic, output_format):
    topic()
    command = f"{shlex.quote(sys.executable)} -m kops topics list --internal -o {output_format} | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=HANG_SECONDS, check=True, env=dict(os.environ))
    assert done.stderr == ""
    assert done.stdout.strip()


@pytest.mark.broker
def test_a_reader_that_reads_nothing(configured, kops_process):
    reading, writing = os.pipe()
    os.close(reading)
    process = kops_process("topics", "list", "--internal", "-o", "json", stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, err) == (1, "")


def test_no_colour_in_a_pipe_or_when_asked(kops_process):
    for environment in ({}, {"NO_COLOR": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "xterm-256color"}):
        process = kops_process("--help", env={**os.environ, **environment})
        out, err = process.communicate(timeout=HANG_SECONDS)
        assert "\x1b" not in out + err
        process = kops_process("topics", "nonsense", env={**os.environ, **environment})
        assert "\x1b" not in "".join(process.communicate(timeout=HANG_SECONDS))


@pytest.mark.broker
def test_a_run_gives_its_connections_back(configured, run_kops):
    def open_files():
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the folder itself is one of them, each time

    commands = (("topics", "list"), ("groups", "list"), ("cluster", "brokers"))
    for command in commands:
        run_kops(*command).ok()
    before = open_files()
    for command in commands * 3:
        run_kops(*command).ok()
    assert open_files() < before + 9  # each run had left six; what other tests hold comes and goes
