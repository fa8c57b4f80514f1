"""Programs that depend on what is around them: rebuilt elsewhere they are right, or doubtful with the reason named."""

import json
import os

import pytest

from support.captured import built_agent
from support.own_apps import FIRST_MS, App
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

AROUND = {
    "LC_ALL": "C",
    "TZ": "Asia/Tokyo",
    "MIN_AMOUNT": "50",
    "MAP_AMOUNT": "50",
    "LATE_AMOUNT": "50",
    "JAVA_TOOL_OPTIONS": "-Dmin.amount=50 -Duser.language=tr -Duser.country=TR -Dapp.note='two words'",
}
OF_JVM = {"charset", "zone", "format", "timestamp", "calendar", "grouping", "letters"}
"""What kops gives the program's JVM as it was."""
OF_SHELL = {"variable", "map", "file", "property", "late"}


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.fixture
def around(monkeypatch):
    """Set what is around the application; return what sets something else again."""

    def put(values):
        for name in AROUND:
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return put


def given():
    """Evening in Greenwich, so that it is the next day in Tokyo."""
    evening = FIRST_MS // 86_400_000 * 86_400_000 + 20 * 3_600_000
    return [Record(b"%d" % at, f"Zürich {at} {evening + at}".encode(), FIRST_MS + at) for at in range(100)]


@pytest.mark.slow
def test_surroundings_are_as_they_were_or_named(cluster, prefix, run_kops, tmp_path, around):
    file, capture = tmp_path / "around.properties", tmp_path / "capture.json"
    file.write_text("min.amount=50\n")
    app = App(cluster, "around", prefix, tmp_path / "app", main="Around", settings=[f"config.file={file}"])
    cluster.create_all({app.topic("in"): 1})
    cluster.produce(app.topic("in"), given())
    around(AROUND)
    app.run()
    run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
    stores = {each["name"] for each in json.loads(capture.read_text())["stores"]}
    assert stores == OF_JVM | OF_SHELL
    held = {store: app.view(store) for store in stores}
    assert held["charset"][b"7"].value.startswith("Z\ufffd\ufffdrich".encode()), held["charset"][b"7"]
    assert {store: len(held[store]) for store in OF_SHELL} == dict.fromkeys(OF_SHELL, 50)

    same = run_kops("state", "verify", "--app", capture, "-B", cluster.servers, "-o", "json").ok()
    assert {row["verdict"] for row in same.json} == {"proven"}
    assert "when the program was captured" not in same.err + same.out

    around({"LC_ALL": "C.UTF-8", "TZ": "UTC"})
    file.write_text("min.amount=0\n")
    other = run_kops("state", "verify", "--app", capture, "-B", cluster.servers, "-o", "json")
    rows = {row["store"]: row for row in other.json}
    assert {name for name, row in rows.items() if row["verdict"] == "proven"} == OF_JVM, other.out
    assert {rows[name]["verdict"] for name in OF_SHELL} == {"doubtful"}
    where = "set it, or capture the program where the application runs"
    known = [
        f"MAP_AMOUNT was set when the program was captured (Around reads it): {where}",
        f"MIN_AMOUNT was set when the program was captured (Around reads it): {where}",
        f"{file} is not what it was when the program was captured (Around reads it): put that there, or capture the program where the"
        " application runs",
    ]
    for sentence in known:
        assert f"note: {sentence}" in other.err
    late = [
        f"LATE_AMOUNT was set when the program was captured (Around reads it): {where}",
        f"the system property min.amount was set when the program was captured (Around reads it): {where}",
    ]
    for row in rows.values():
        assert {*known, *late} <= {finding["summary"] for finding in row["findings"]}, row
        assert "app.note" not in str(row)


@pytest.mark.slow
def test_the_locale_of_the_shell_is_that_of_the_program(kops_process, tmp_path):
    """Python sets LC_CTYPE for its children where the locale is that of C, and a JVM would read text otherwise."""

    class NoBroker:
        servers = "127.0.0.1:1"

    app, capture = App(NoBroker(), "texts", "app", tmp_path / "app"), tmp_path / "capture.json"
    shell = {name: value for name, value in os.environ.items() if name != "LANG" and not name.startswith("LC_")}
    process = kops_process("streams", "capture", "--out", capture, "--", *app.command, env=shell)
    assert process.wait() == 0, process.communicate()
    assert json.loads(capture.read_text())["surroundings"]["charset"] == "US-ASCII"
