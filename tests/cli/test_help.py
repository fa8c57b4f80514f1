"""Every command has help, and takes the shared options before and after the verb."""

import click
import pytest
from click.testing import CliRunner

from kops.cli.frame.main import NOUNS, cli

SHARED = ("--output", "--context", "--bootstrap-server", "--property", "--command-config", "--timeout", "--quiet", "--verbose", "--debug")


def commands(command, path=()):
    """Every command of the tree with its words."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))


ALL = dict(commands(cli))
MUTATIONS = sorted(path for path, command in ALL.items() if any(param.name == "plan_out" for param in command.params))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help(path):
    for flag in ("--help", "-h"):
        done = CliRunner(env={"COLUMNS": "80"}).invoke(cli, [*path, flag], terminal_width=80)
        assert done.exit_code == 0, done.output
        assert done.output.startswith(f"Usage: cli {' '.join(path)}".rstrip())
        assert all(option in done.output for option in SHARED)
    own = done.output.split("\n\n")
    assert len(own) > 2
    assert len(own[1].strip()) > 10, "it says what it does"


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_parameter_is_explained(path):
    for param in ALL[path].params:
        if isinstance(param, click.Option) and not param.hidden:
            assert param.help, f"{param.opts} of {path}"


def test_the_roots_table_tells_what_each_noun_is():
    assert set(NOUNS) == {path[0] for path in ALL if path}
    assert all(text.endswith(".") for _, text in NOUNS.values())


@pytest.mark.parametrize("path", MUTATIONS, ids=" ".join)
def test_every_mutation_takes_the_same_approval(path):
    options = {option for param in ALL[path].params for option in param.opts}
    assert {"--dry-run", "--yes", "--confirm", "--plan-out"} <= options


def test_these_commands_change_things():
    assert {("topics", "create"), ("topics", "delete"), ("offsets", "reset"), ("undo",), ("apply",), ("journal", "finish")} <= set(
        MUTATIONS
    )


@pytest.mark.parametrize(("typed", "meant"), [(("topcs",), "topics"), (("topics", "craete"), "create"), (("journal", "finsh"), "finish")])
def test_a_slip_names_the_nearest_command(run_kops, typed, meant):
    done = run_kops(*typed)
    assert done.code == 2
    assert f"Did you mean '{meant}'?" in done.err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("lag",), "'kops groups lag' or 'kops share-groups lag'"),
        (("topics", "lag"), "'kops groups lag' or 'kops share-groups lag'"),
        (("reset",), "'kops share-groups reset', 'kops offsets reset' or 'kops streams reset'"),
        (("help", "lag"), "'kops groups lag' or 'kops share-groups lag'"),
        (("sandbox", "delete"), "'kops sandbox down --delete'"),
        (("topics", "context"), None),
    ],
)
def test_a_verb_without_its_noun_names_the_command(run_kops, typed, meant):
    done = run_kops(*typed)
    assert (done.code, done.out) == (2, "")
    assert (f"Did you mean {meant}?" if meant else "No such command") in done.err
    assert ("Did you mean" in done.err) == (meant is not None)


@pytest.mark.parametrize("path", [(), ("offsets",), ("offsets", "reset"), ("undo",), ("topic", "ls")], ids=" ".join)
def test_help_as_a_word(run_kops, path):
    assert run_kops("help", *path).ok().out == run_kops(*path, "--help").ok().out


def test_help_for_what_is_not_there(run_kops):
    assert "no such command" in run_kops("help", "nothing-like-it").err.lower()
    refused = run_kops("help", "undo", "more")
    assert (refused.code, "'kops undo' has no commands of its own" in refused.err) == (2, True)


def test_the_version_in_each_way_that_is_typed(run_kops):
    assert run_kops("version").ok().out == run_kops("-V").ok().out == run_kops("--version").ok().out


def test_shared_options_work_before_and_after_the_verb(run_kops):
    outputs = [
        run_kops(*words).ok().out
        for words in (("-o", "json", "journal", "list"), ("journal", "-o", "json", "list"), ("journal", "list", "-o", "json"))
    ]
    assert outputs == ["[]\n"] * 3
    assert run_kops("-o", "yaml", "journal", "list", "-o", "json").ok().out == "[]\n"  # the inner one wins


@pytest.mark.parametrize(
    "noun",
    [
        "",
        *(
            name
            for path, command in ALL.items()
            for name, *more in [path or ("",)]
            if name and not more and isinstance(command, click.Group)
        ),
    ],
)
def test_a_noun_alone_prints_its_help(run_kops, noun):
    done = run_kops(*noun.split())
    assert (done.code, done.err) == (0, "")
    assert done.out == run_kops(*noun.split(), "--help").ok().out


@pytest.mark.parametrize("words", [("topic", "ls", "-h"), ("topics", "ls", "-h"), ("group", "list", "-h"), ("contexts", "ls", "-h")])
def test_other_names_of_nouns_and_verbs(run_kops, words):
    whole = {"topic": "topics", "group": "groups", "contexts": "context", "ls": "list"}
    assert run_kops(*words).ok().out == run_kops(*(whole.get(word, word) for word in words)).ok().out


@pytest.mark.parametrize("typed", ["s", "topicss", "lss"])
def test_other_words_are_no_names(run_kops, typed):
    assert run_kops(typed, "list").code == 2
