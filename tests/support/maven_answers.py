"""Asks Apache Maven which jars the sets of kops and its tests are, and records its answers beside the test that compares them.

    python tests/support/maven_answers.py [SET...]

It runs ``mvn dependency:list -DincludeScope=runtime`` (Maven 3) on a POM with the artifacts of each set.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from kops.gateways.connect.plugins import FILE_STREAM, parse_coordinate
from kops.gateways.machine.jars import JarSet, connect_set, kafka_set

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.captured import EXAMPLES, QUARKUS
from support.dead_letters import SMALLRYE
from support.dead_letters import SPRING as SPRING_BINDER
from support.java_judge import JUDGE
from support.older_streams import older_set
from support.public_apps import AVRO, MICRONAUT, SPRING, SPRING_CLOUD

ANSWERS = Path(__file__).parents[1] / "sandbox" / "maven_answers.yaml"
SETS = {
    jars.folder: jars
    for jars in (
        *(kafka_set(version) for version in ("3.3.2", "3.6.2", "3.9.1", "4.1.1", "4.4.0")),
        *(connect_set(version) for version in ("3.9.1", "4.4.0")),
        *(older_set(version) for version in ("2.8.2", "3.0.2")),
        *(AVRO, EXAMPLES, JUDGE, MICRONAUT, QUARKUS, SMALLRYE, SPRING, SPRING_BINDER, SPRING_CLOUD),
        JarSet("connect-file", "4.3.1", (parse_coordinate(FILE_STREAM),)),
        JarSet(
            "spark-kafka",
            "4.2.0",
            (parse_coordinate("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"),),
            exclude=("org.scala-lang", "org.apache.hadoop"),
        ),
    )
}
_POM = """<project><modelVersion>4.0.0</modelVersion><groupId>kops</groupId><artifactId>set</artifactId><version>1</version>
<dependencies>{}</dependencies></project>"""
_DEPENDENCY = """<dependency><groupId>{0.organisation}</groupId><artifactId>{0.name}</artifactId><version>{0.version}</version>
<exclusions>{1}</exclusions></dependency>"""
_EXCLUSION = "<exclusion><groupId>{}</groupId><artifactId>*</artifactId></exclusion>"
_LINE = re.compile(r"^\s+([\w.-]+):([\w.-]+):jar:(?:([\w.-]+):)?([\w.-]+):(?:compile|runtime)\b", re.MULTILINE)


def recorded() -> dict[str, list[str]]:
    """Return Maven's answers by set."""
    answers: dict[str, list[str]] = yaml.safe_load(ANSWERS.read_text("utf-8"))
    return answers


def ask_maven(wanted: JarSet, folder: Path) -> list[str]:
    """Return the files of a set, sorted."""
    left_out = "".join(map(_EXCLUSION.format, wanted.exclude))
    (folder / "pom.xml").write_text(_POM.format("".join(_DEPENDENCY.format(each, left_out) for each in wanted.artifacts)), "utf-8")
    listing = folder / "listing.txt"
    command = ["mvn", "-q", "-B", "dependency:list", "-DincludeScope=runtime", f"-DoutputFile={listing}"]
    subprocess.run(command, cwd=folder, check=True)
    found = _LINE.findall(listing.read_text("utf-8"))
    return sorted(f"{name}-{version}{classifier and '-'}{classifier}.jar" for _, name, classifier, version in found)


def main(names: list[str]) -> None:
    answers = recorded() if ANSWERS.is_file() else {}
    for name in names or SETS:
        with tempfile.TemporaryDirectory() as folder:
            answers[name] = ask_maven(SETS[name], Path(folder))
        ANSWERS.write_text(f"# Written by {Path(__file__).name}.\n{yaml.safe_dump(answers)}", "utf-8")
        print(f"{name}: {len(answers[name])} jars", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
