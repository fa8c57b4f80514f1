"""Programs invented against the rebuild by a program's own code: where they keep what they have seen, what around them they read.

Each is a store of an application that is restarted, then loses all that it holds: its keys come back right, or are in doubt.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from kops.config.paths import directories
from kops.gateways.machine.jars import KAFKA_VERSION, JarSet, class_path, jars_of
from kops.gateways.machine.maven import Artifact
from support.captured import SOURCES as CAPTURED
from support.captured import built_agent, java
from support.own_apps import SOURCES as APPS
from support.own_apps import App, records
from support.own_code import TREE, jars_of_streams
from support.own_oracles import LOST, lose_and_rebuild
from support.public_apps import SCALA
from support.streams import compiled

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

SOURCES = TREE / "tests" / "streams" / "varied_apps"
KOTLIN = JarSet("kotlin", "2.4.21", (Artifact("org.jetbrains.kotlin", "kotlin-compiler-embeddable", "2.4.21"),))
LIBRARIES = JarSet(
    "invented",
    "1",
    (
        Artifact("com.google.guava", "guava", "33.8.0-jre"),
        Artifact("com.github.ben-manes.caffeine", "caffeine", "3.3.1"),
        Artifact("io.micrometer", "micrometer-core", "1.17.2"),
        Artifact("io.reactivex.rxjava3", "rxjava", "3.1.10"),
    ),
)
AROUND = {"TZ": "Asia/Tokyo", "JAVA_TOOL_OPTIONS": "-Duser.language=de -Duser.country=DE -Dfile.encoding=ISO-8859-1"}
RIGHT = {"charset"}
"""What a capture notes of the surroundings, so that a rebuild has it as it was."""


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


def cached(jars: JarSet) -> list[Path]:
    return jars_of(jars, directories(os.environ).cache)


@dataclass
class InJava(App):
    main: str = "Invented"

    @property
    def path(self) -> str:
        jars = [*jars_of_streams(KAFKA_VERSION), *cached(LIBRARIES)]
        also = [APPS / "Apps.java", CAPTURED / "windows" / "OwnWindows.java"]
        return class_path([*jars, compiled(SOURCES / "Invented.java", KAFKA_VERSION, [*jars], also), SOURCES / "resources"])


@dataclass
class InKotlin(App):
    main: str = "InKotlinKt"

    @property
    def path(self) -> str:
        jars, found = jars_of_streams(KAFKA_VERSION), cached(KOTLIN)
        compiler = java("-cp", class_path(found), "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", "-no-stdlib", "-no-reflect", "-nowarn")
        library = [jar for jar in found if jar.name.startswith("kotlin-stdlib")]
        needed = [*jars, *library]
        return class_path([*needed, compiled(SOURCES / "kotlin" / "InKotlin.kt", KAFKA_VERSION, needed, compiler=compiler)])


@dataclass
class InScala(App):
    main: str = "KeptInScala"

    @property
    def path(self) -> str:
        jars = cached(SCALA)
        compiler = java("-cp", class_path(jars), "scala.tools.nsc.Main", "-nowarn")
        return class_path([*jars, compiled(SOURCES / "scala" / "KeptInScala.scala", SCALA.version, jars, compiler=compiler)])


@pytest.mark.parametrize("made", [InJava, InKotlin, InScala])
def test_what_an_invented_program_holds_comes_back_right_or_doubtful(cluster, prefix, run_kops, tmp_path, monkeypatch, made):
    app = made(cluster, "invented", prefix, tmp_path / "app", settings=[f"config.file={tmp_path / 'counted'}"])
    capture = tmp_path / "capture.json"
    cluster.create(app.topic("in"), 2)
    with monkeypatch.context() as around:
        for name, value in AROUND.items():
            around.setenv(name, value)
        for seed in (1, 2):  # it is restarted in between
            cluster.produce(app.topic("in"), records(70, seed=seed, keys=9))
            app.run()
        run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
    found = lose_and_rebuild(cluster, run_kops, capture, [LOST])
    print(made.__name__, found.verdicts, found.differing)
    assert not found.wrong, "\n".join(found.wrong)
    assert not {name for name in found.differing if name.startswith("pure") or name in RIGHT}
