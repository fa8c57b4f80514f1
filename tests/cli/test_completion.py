"""Completion by the shells' own protocol, and by the shells themselves where they are there."""

import os
import shlex
import shutil
import socket
import subprocess
import sys

import click
import pytest

from kops.cli.frame.completing import kinds_of
from kops.cli.frame.main import cli
from support.patience import HANG_SECONDS

BRIEF = {"KOPS_COMPLETION_SECONDS": "0.7"}
PATIENT = {"KOPS_COMPLETION_SECONDS": str(HANG_SECONDS)}
"""The second that people get may not be enough for a busy machine."""


@pytest.fixture
def complete():
    """Ask for completion as bash does: the words, the last of which is being typed."""

    def ask(*words, **environment):
        variables = {"_KOPS_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["kops", *words]), "COMP_CWORD": str(len(words))}
        command = [sys.executable, "-m", "kops"]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
            env={**os.environ, **variables, **PATIENT, **environment},
        )
        assert (done.returncode, done.stderr) == (0, "")
        return [line.removeprefix("plain,") for line in done.stdout.splitlines() if line]

    return ask


@pytest.mark.broker
@pytest.mark.parametrize(
    "words", [("topics", "describe"), ("topics", "list", "x"), ("offsets", "reset", "g", "--topic"), ("topics", "create", "new", "--like")]
)
def test_topics(configured, complete, topic, words):
    name = topic("compl")
    assert complete(*words, name[:-1]) == [name]
    assert complete(*words, "no-such-topic-") == []


@pytest.mark.broker
def test_kafkas_own_topics_only_when_asked_for(configured, complete, topic, broker):
    from support.topics import commit

    topic_name = topic()
    commit(broker, topic_name, topic_name)  # so that there is one
    assert complete("topics", "describe", "__consumer") == ["__consumer_offsets"]
    assert "__consumer_offsets" not in complete("topics", "describe", "")


@pytest.mark.broker
def test_groups(configured, complete, topic, broker, unique):
    from support.topics import commit

    group = unique("compl")
    commit(broker, topic(), group)
    assert complete("groups", "describe", group[:-1]) == [group]
    assert complete("offsets", "reset", "--group", group[:-1]) == [group]
    assert complete("offsets", "reset", group[:-1]) == [group]


@pytest.mark.broker
def test_share_groups(configured, complete, topic, broker, unique):
    from confluent_kafka import ShareConsumer

    from support.consumer_groups import member
    from support.streams_apps import wait_for

    group = unique("compl")
    with member(broker.bootstrap_servers, group, topic(), consumer=ShareConsumer({**broker.client, "group.id": group})):
        wait_for("the share group", lambda: complete("groups", "describe", group[:-1]) == [group])


@pytest.mark.broker
def test_the_line_says_which_cluster(complete, broker, topic):
    name = topic("compl")
    assert complete("topics", "describe", name[:-1]) == []  # no cluster is known
    assert complete("topics", "describe", "-B", broker.bootstrap_servers, name[:-1]) == [name]
    assert complete("topics", "-B", broker.bootstrap_servers, "describe", name[:-1]) == [name]
    assert complete("topics", "describe", name[:-1], KOPS_BOOTSTRAP_SERVERS=broker.bootstrap_servers) == [name]


def test_contexts(complete, run_kops):
    for name in ("prod", "prod-eu", "test"):
        run_kops("context", "add", name, "--bootstrap-servers", "127.0.0.1:1", "--no-test").ok()
    for words in (("context", "use"), ("context", "remove"), ("topics", "list", "-c"), ("--context",)):
        assert complete(*words, "pr") == ["prod", "prod-eu"]
    assert complete("context", "add", "pr") == []  # that one is to be new


@pytest.mark.parametrize("words", [("topics", "describe", "x"), ("groups", "describe", "x"), ("topics", "list", "-c", "x")])
def test_nothing_is_said_when_it_cannot_be_known(complete, words):
    assert complete(*words) == []
    assert complete(*words, KOPS_BOOTSTRAP_SERVERS="127.0.0.1:1", **BRIEF) == []
    assert complete(*words, KOPS_BOOTSTRAP_SERVERS="no port", KOPS_CONTEXT="nowhere") == []


@pytest.mark.parametrize("noun", ["topics", "groups"])
def test_a_broker_that_does_not_answer(complete, noun):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf_servers = {"KOPS_BOOTSTRAP_SERVERS": f"127.0.0.1:{deaf.getsockname()[1]}", "KOPS_TIMEOUT": "3600"}
        assert complete(noun, "describe", "x", **deaf_servers, **BRIEF) == []  # without the budget it would wait for an hour


def test_a_configuration_that_is_broken(complete, run_kops):
    run_kops("context", "add", "one", "--bootstrap-servers", "127.0.0.1:1", "--no-test").ok()
    from kops.config.paths import directories

    directories(os.environ).config_file.write_text("[contexts\n")
    assert complete("context", "use", "o") == []
    assert complete("topics", "describe", "o") == []


def test_a_bug_says_nothing(complete):
    assert complete("topics", "describe", "'unclosed") == []


SHELLS = {
    "bash": 'eval "$({kops} completion bash)"; COMP_WORDS=(kops topics describe {typed}); COMP_CWORD=3; _kops_completion {kops}; '
    'printf "%s\\n" "${{COMPREPLY[@]}}"',
    "zsh": "compdef() {{ : }}; compadd() {{ print -rl -- $completions }}; source <({kops} completion zsh); "
    "words=(kops topics describe {typed}); CURRENT=4; _kops_completion",
    "fish": '{kops} completion fish | source; complete -C "kops topics describe {typed}"',
}


@pytest.mark.broker
@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell(shell, configured, topic, tmp_path):
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    name = topic("compl")
    program = tmp_path / "kops"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kops "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path), **PATIENT}
    options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    script = SHELLS[shell].format(kops="kops", typed=name[:-1])
    done = subprocess.run(
        [found, *options, "-c", script], capture_output=True, text=True, timeout=HANG_SECONDS, check=False, env=environment
    )
    assert (done.stdout.split(), done.stderr) == ([name], "")


def parameters(path):
    command, context = cli, click.Context(cli, info_name="kops")
    for word in path.split():
        command = command.get_command(context, word)
        context = click.Context(command, parent=context, info_name=word)
    return context, {name: param for param in command.params for name in (param.name, *param.opts)}


@pytest.mark.parametrize(
    ("path", "parameter", "kinds"),
    [
        ("topics describe", "patterns", ["topics"]),
        ("topics describe", "--topic", ["topics"]),
        ("topics create", "names", []),
        ("topics create", "--topic", []),
        ("topics create", "--like", ["topics"]),
        ("topics create", "--config", ["settings"]),
        ("topics alter", "--delete-config", ["setting names"]),
        ("connect alter", "--config", []),
        ("topics delete", "--confirm", []),
        ("groups lag", "names", ["groups"]),
        ("offsets reset", "--topic", ["topics"]),
        ("offsets seek", "positions", ["topics"]),
        ("changelog inspect", "--application", ["groups"]),
        ("changelog inspect", "--store", []),
        ("context show", "name", ["contexts"]),
        ("context add", "name", []),
        ("cluster health", "--context", ["contexts"]),
        ("journal show", "entry_id", []),
        ("sandbox up", "--name", []),
        ("schemas show", "subject", ["subjects"]),
        ("schemas list", "patterns", ["subjects"]),
        ("schemas delete", "subject", ["subjects"]),
        ("users delete", "user", ["users"]),
        ("users create", "user", []),
        ("tokens renew", "token", ["tokens"]),
        ("tokens expire", "token", ["tokens"]),
    ],
)
def test_which_names_a_parameter_takes(path, parameter, kinds):
    context, known = parameters(path)
    assert kinds_of(context, known[parameter]) == kinds
