"""What ``--app`` is given with, before anything is connected or started."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from kops.core.secret_shapes import HIDDEN
from kops.gateways.machine import program_connection
from support.stand_in_jars import stand_in, write_jar

CAPTURED = json.loads((Path(__file__).parents[2] / "core" / "streams" / "capture.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Be in a folder with jars and a capture, with no broker to be found."""
    stand_in(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def capture(home):
    def write(**changed):
        (home / "c.json").write_text(json.dumps({**CAPTURED, **changed}), encoding="utf-8")
        return "c.json"

    return write


@pytest.fixture
def said(run_kops, home):
    """Run a command that is refused; return its one line."""

    def run(code, *arguments):
        before = sorted(home.iterdir())
        done = run_kops("state", *arguments, "-B", "127.0.0.1:1")
        assert (done.code, done.out) == (code, "")
        assert sorted(home.iterdir()) == before
        (line,) = [line for line in done.err.splitlines() if line.startswith("kops: error: ")]
        return line.removeprefix("kops: error: ")

    return run


REFUSED = {
    ("rebuild", "state.yaml"): "--app takes the place of SOURCE: leave out one of them",
    ("verify", "state.yaml"): "--app takes the place of SOURCE: leave out one of them",
    (
        "diff",
        "--on-error",
        "skip",
    ): "a program itself decides what becomes of records that it cannot read: leave out --on-error",
    ("query", "--all", "--on-error", "skip"): "a program itself decides what becomes of records that it cannot read: leave out --on-error",
    ("query", "state.yaml", "key"): "--app takes the place of SOURCE: name a key, or --all for the whole table",
    ("query",): "name either a key, or --all for the whole table",
    (
        "rebuild",
        "--store",
        "counts",
        "--into",
        "other",
        "--write",
        "replace",
    ): "--into writes to another application, so --write replace does not apply",
    ("repartition", "state.yaml", "--partitions", "6"): "--app takes the place of SOURCE: leave out one of them",
    ("repartition", "--partitions", "6", "--store", "counts"): "all stores of a program move: leave out --store",
    ("query", "--all", "--no-network"): "--no-network goes with --from input: a changelog is read without the program",
}


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_what_a_program_does_not_do_is_refused(said, capture, arguments):
    assert said(2, *arguments, "--app", capture()) == REFUSED[arguments]


def test_a_state_file_calls_nobody(said, home):
    (home / "state.yaml").write_text("application: a\nstores: {}\n")
    assert said(2, "rebuild", "state.yaml", "--no-network") == "--no-network is for a program: with a state file none is run"
    assert said(2, "verify", "state.yaml", "--disturb", "all") == "--disturb is for a program: with a state file none is run"


def test_a_system_without_namespaces_runs_no_program_alone(said, capture, monkeypatch):
    monkeypatch.setattr(program_connection, "shutil", SimpleNamespace(which=lambda _name: None))
    why = "this system does not run a program without a network: there is no command `unshare`, which Linux has"
    assert said(2, "rebuild", "--app", capture(), "--no-network") == why


def test_a_capture_is_known_by_what_it_holds(said, capture, home):
    """Whether it is whole or not, and whatever it is called."""
    assert said(2, "verify", capture(), "--store", "count").startswith("c.json has no store count")
    text = (home / "c.json").read_text(encoding="utf-8")
    (home / "state.yaml").write_text(f"\n {text[:-9]}", encoding="utf-8")
    assert said(2, "query", "state.yaml", "key").startswith("state.yaml is not JSON: ")
    (home / "c.json").write_text(json.dumps({"application": "a", "format": "kops-state", "stores": {}}), encoding="utf-8")
    assert said(2, "rebuild", "c.json", "--no-network") == "--no-network is for a program: with a state file none is run"


@pytest.mark.parametrize("arguments", [("--into", "other"), ("--at", "end"), ("--at", "@-1h")], ids=" ".join)
def test_what_moves_an_application_needs_all_of_its_stores(said, capture, arguments):
    line = said(5, "rebuild", *arguments, "--app", capture())
    assert line.startswith(f"{arguments[0]} needs all stores of the program, and store ")


@pytest.mark.parametrize("verb", ["rebuild", "verify", "diff", "query"])
def test_without_a_capture_a_state_file_is_needed(said, verb):
    assert said(2, verb).startswith("Missing argument 'SOURCE'")


def test_a_store_that_the_program_does_not_have(said, capture):
    assert said(2, "verify", "--app", capture(), "--store", "count").startswith("c.json has no store count")


@pytest.mark.parametrize(
    ("store", "why"),
    [
        ("seen", "how long it keeps versions could not be read"),
        ("recent", "it has no changelog"),
    ],
)
def test_a_store_that_cannot_be_computed_so(said, capture, store, why):
    stores = [{**each, "kind": "versioned"} if each["name"] == "seen" else each for each in CAPTURED["stores"]]
    assert said(5, "rebuild", "--app", capture(stores=stores), "--store", store) == f"store {store} cannot be rebuilt by its program: {why}"


def test_a_capture_whose_command_cannot_be_started_again(said, capture):
    assert "had secrets, which are not in it" in said(5, "rebuild", "--app", capture(command=["java", f"--password={HIDDEN}"]))
    config = {**CAPTURED["config"], "given": {"sasl.jaas.config": HIDDEN, "basic.auth.user.info": HIDDEN, "application.id": "many"}}
    hidden = capture(command=["java", "kops.agent.Launch", "a.B::c", "/gone"], config=config)
    assert "its settings basic.auth.user.info had secrets, which are not in it" in said(5, "rebuild", "--app", hidden)


def test_a_capture_without_the_settings_of_its_consumers(said, capture):
    assert "the settings of its consumers could not be read" in said(
        5, "rebuild", "--app", capture(config={**CAPTURED["config"], "main_consumer": None})
    )


def test_a_file_that_is_no_capture(said, home):
    (home / "state.yaml").write_text("application: a", encoding="utf-8")
    said(2, "verify", "--app", "state.yaml")


@pytest.mark.parametrize(("jar", "what"), [("kops-agent.jar", "its Java agent"), ("kops-runner.jar", "the runner of programs")])
def test_a_kops_that_was_built_without_java(said, capture, home, jar, what):
    (home / jar).unlink()
    assert said(2, "verify", "--app", capture()) == f"this kops was built without {what}"


@pytest.mark.parametrize("jar", ["kops-agent.jar", "kops-runner.jar"])
def test_java_parts_of_another_kops(run_kops, capture, home, jar):
    """As an update leaves them that took no `make setup`, or put the Python code alone in its place."""
    write_jar(home / jar, "0.0.9")
    done = run_kops("state", "verify", "--app", capture(), "-B", "127.0.0.1:1")
    assert done.code == 2
    assert f"kops: error: {jar} was built with another version of kops' code than this one\n" in done.err
    assert "run `make setup` in a clone" in done.err


def test_without_a_network_registries_with_other_apis_cannot_be_asked(said, capture):
    config = {**CAPTURED["config"], "given": {**CAPTURED["config"]["given"], "apicurio.registry.url": "http://registry:8081"}}
    assert said(5, "verify", "--app", capture(config=config), "--no-network") == (
        "the program asks a schema registry by Apicurio's own API (apicurio.registry.url), which kops cannot pass on: without a network"
        " its serdes could not ask it"
    )


@pytest.mark.parametrize("url", ["mock://mine", "http://registry:8081"])
def test_a_registry_needs_no_network_but_namespaces(said, capture, monkeypatch, url):
    monkeypatch.setenv("PATH", "")
    config = {**CAPTURED["config"], "given": {**CAPTURED["config"]["given"], "schema.registry.url": url}}
    assert said(2, "verify", "--app", capture(config=config), "--no-network").startswith("this system does not run a program without")


@pytest.mark.parametrize("verb", [["verify"], ["rebuild"], ["repartition", "--partitions", "4"], ["query", "--all", "--from", "input"]])
def test_a_program_of_an_older_library_is_refused_in_one_line_before_anything_starts(said, capture, verb):
    older = capture(library={**CAPTURED["library"], "streams": "2.7.2"})
    assert said(5, *verb, "--app", older) == "c.json is of a program of Kafka Streams 2.7.2: kops runs those of 2.8 and newer"
