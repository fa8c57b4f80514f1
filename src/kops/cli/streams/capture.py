"""``kops streams capture``."""

from __future__ import annotations

import os

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.session import Session
from kops.core.findings import counted
from kops.core.visible import visible


@click.command("capture", cls=Command)
@click.argument("command", metavar="[-- COMMAND...]", nargs=-1)
@click.option("--out", metavar="FILE", required=True, type=click.Path(dir_okay=False), help="Where to write the capture (JSON).")
@click.option("--topology-class", metavar="CLASS::METHOD", help="Call this static method instead of starting a command.")
@click.option("--jar", "jars", metavar="JAR", multiple=True, help="Start this jar; with --topology-class: on its class path; repeatable.")
@click.option("--class-path", metavar="PATH", help="Further class path for --topology-class, as java -cp takes it.")
@click.option("--properties", "properties_file", metavar="FILE", help="The program's settings, for --topology-class.")
@click.option("--within", metavar="DURATION", default="2m", show_default=True, help="How long it may take to construct KafkaStreams.")
@click.pass_obj
def capture(
    session: Session,
    *,
    command: tuple[str, ...],
    out: str,
    topology_class: str | None,
    jars: tuple[str, ...],
    class_path: str | None,
    properties_file: str | None,
    within: str,
) -> None:
    """Record the stores, topics and settings of a Kafka Streams program.

    Starts COMMAND, whatever it is, with a Java agent in JAVA_TOOL_OPTIONS, and ends it where it constructs KafkaStreams: no record is
    consumed, nothing is produced. What the program itself does before that, it does: give it settings with which that is harmless.

    The file has sub-topologies, nodes, stores, internal topics with their settings, the program's settings without secrets, the version
    of the library, and digests of the class path.

    --topology-class calls a static method, without arguments or with Properties, that returns a Topology or a StreamsBuilder.
    """
    from kops.core.durations import parse_duration
    from kops.core.streams.capture_file import read_capture
    from kops.operations.streams.capture import capture_method, capture_notes, capture_program, capture_row, read_properties, save_capture
    from kops.output.table import Column

    milliseconds = parse_duration(within)
    if topology_class:
        if command:
            raise click.UsageError("name a COMMAND or --topology-class, not both")
        path = [*jars, *(class_path or "").split(os.pathsep)]
        body = capture_method(topology_class, [each for each in path if each], read_properties(properties_file), milliseconds)
    else:
        if class_path or properties_file:
            raise click.UsageError("--class-path and --properties go with --topology-class")
        if bool(command) == bool(jars) or len(jars) > 1:
            raise click.UsageError("name what to start: `-- COMMAND...`, one --jar, or --topology-class")
        body = capture_program(command or ("java", "-jar", jars[0]), milliseconds)
    save_capture(body, out)
    found = read_capture(body, out)
    row = capture_row(found, out)
    if session.output_format != "table":
        session.render_object(row, name="application")
    else:
        version = found.streams_version or "of an unknown version"
        click.echo(visible(f"{found.application}: {counted(row['subtopologies'], 'sub-topology')}, kafka-streams {version}"))
        if row["stores"]:
            click.echo()
            session.render(row["stores"], ["store", "kind", Column("subtopology", "SUB-TOPOLOGY"), "changelog"])
    for sentence in capture_notes(found):
        session.note(f"note: {sentence}")
    session.note(f"written: {out}")
