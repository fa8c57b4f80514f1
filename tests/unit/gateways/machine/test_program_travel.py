"""A program's command and files, packed on one machine and unpacked on another."""

import os
import zipfile
from pathlib import Path

import pytest

from kops.core.errors import MissingRequirement, Refused
from kops.gateways.machine import program_travel
from kops.gateways.machine.jdk import require_jdk
from kops.gateways.machine.program_travel import on_host, pack, unpacked


@pytest.fixture
def there(tmp_path):
    """A program in a folder, with a capture of its class path: in the order in which a wildcard stood for its jars."""
    home = tmp_path / "there"
    for name in ("lib/b.jar", "lib/a.jar", "agent.jar", "conf/app.properties", "log.xml", "classes/App.class"):
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (home / "empty").mkdir()
    return home


@pytest.fixture
def moved(there, tmp_path, monkeypatch):
    """Pack a command, delete all that it needs, and unpack it elsewhere."""
    monkeypatch.setattr(program_travel, "require_agent", lambda: there / "agent.jar")
    monkeypatch.setattr(program_travel, "require_runner", lambda: there / "log.xml")

    def move(*words, java=None, environment=None):
        class_path = [str(there / name) for name in ("classes", "empty", "lib/b.jar", "lib/a.jar", "gone.jar")]
        archive = tmp_path / "program.zip"
        packed = pack(["/opt/java/bin/java", *words], str(there), class_path, archive, java=java, environment=environment or {})
        with zipfile.ZipFile(archive) as content:
            files = [each for each in content.infolist() if not each.is_dir()]  # as Hadoop's FileUtil, which Spark unpacks by
            for each in files:
                content.extract(each, tmp_path / "here")
        there.rename(tmp_path / "elsewhere")
        return unpacked(packed, str(tmp_path / "here"))

    return move


def test_a_class_path_and_named_files_are_where_the_command_says(moved, there, tmp_path):
    root = Path(f"{tmp_path / 'here'}{there}")
    found = moved(
        *("-cp", f"{there}/classes:empty:lib/*:{there}/gone.jar", f"-javaagent:{there}/agent.jar=port=1", "-Xmx1g"),
        *(f"-Dlog=file:{there}/log.xml", "-Dconf=conf/app.properties", "com.acme.App", "agent.jar", "/nowhere/else"),
    )
    java, *words = found.command
    assert Path(java) == require_jdk().java
    assert words == [
        *(
            "-cp",
            f"{root}/classes:empty:{root}/lib/b.jar:{root}/lib/a.jar:{root}/gone.jar",
            f"-javaagent:{root}/agent.jar=port=1",
            "-Xmx1g",
        ),
        *(f"-Dlog=file:{root}/log.xml", "-Dconf=conf/app.properties", "com.acme.App", "agent.jar", "/nowhere/else"),
    ]
    assert found.directory == str(root)
    for name in ("classes/App.class", "lib/a.jar", "lib/b.jar", "agent.jar", "log.xml", "conf/app.properties"):
        assert (root / name).read_text() == name
    assert (root / "empty").is_dir()
    assert not (root / "gone.jar").exists()


def test_variables_of_the_program_go_along_and_those_of_the_machine_do_not(moved, there, tmp_path):
    given = {"MIN_AMOUNT": "5", "PATH": "/bin", "JAVA_HOME": "/java", "SPARK_HOME": "/spark", "KOPS_CONTEXT": "here", "PATHS": "kept"}
    given |= {"JAVA_TOOL_OPTIONS": f"-Xmx64m -javaagent:{there}/agent.jar", "CLASSPATH": f"{there}/lib/*"}
    root = f"{tmp_path / 'here'}{there}"
    assert moved("App", environment=given).environment == {
        "MIN_AMOUNT": "5",
        "PATHS": "kept",
        "JAVA_TOOL_OPTIONS": f"-Xmx64m -javaagent:{root}/agent.jar",
        "CLASSPATH": f"{root}/lib/b.jar:{root}/lib/a.jar",
    }


def test_another_java_is_refused(moved):
    jdk = require_jdk()
    with pytest.raises(Refused) as caught:
        moved("App", java=8)
    there = on_host(caught.value, "worker-7", 8)
    said = f"Spark's worker on worker-7 has no Java 8, with which the program was captured: {jdk.java} is Java {jdk.version}"
    assert (type(there), there.message) == (Refused, said)


def test_no_java(moved, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", os.devnull)
    with pytest.raises(MissingRequirement) as caught:
        moved("App")
    there, missing = on_host(caught.value, "worker-7", None), "JAVA_HOME is /dev/null, but there is no bin/java in it"
    assert (type(there), there.message) == (MissingRequirement, f"Spark's worker on worker-7 cannot start the program: {missing}")
