"""Every command that kops suggests, in any text of its source, is one that kops takes: options known, arguments present."""

import ast
import re
from functools import cache
from pathlib import Path

import click
import pytest

import kops
from kops.cli.frame.main import cli
from support.from_apache import FROM_APACHE
from support.suggested import assert_taken

SOURCE = Path(kops.__file__).parent
COMMAND = re.compile(r"`(kops [^`]+)`")
FILLED = "1"
"""Stands for what a text fills in: a name, an id, a number."""
PROSE = re.compile(r"kops (?:VERB|NOUN|1)|\.\.\.|\[|\||<")
"""Not one command, but the form of many."""
OTHER_TOOLS = (*FROM_APACHE.table()["tools"], *FROM_APACHE.table()["verbs"], "topicctl", "kafka-ui")
OTHER_TOOL = re.compile(rf"(?<![\w-])(?:{'|'.join(OTHER_TOOLS)}|[a-z-]+\.sh)(?![\w-])")
NO_ADVICE = {
    "kafka-cluster",  # the name of the cluster as a resource of ACLs
    "Offsets as Apache's kafka-delete-records takes them.",  # a format of files
}
NUMBER = re.compile(r"(?<= --to-offset )N\b")


def texts(tree):
    """Yield the texts of a module but not its docstrings; what f-strings fill in is ``FILLED``."""
    docstrings = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and body:
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                docstrings.add(id(first.value))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    left_out = docstrings | inside
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else FILLED for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


def helps(tree):
    """Yield the docstrings that click shows."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(map(makes_command, node.decorator_list)):
            yield ast.get_docstring(node) or ""


def makes_command(decorator):
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute) and decorator.func.attr in ("command", "group")


@cache
def suggested():
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
            for command in COMMAND.findall(text):
                if not PROSE.search(command):
                    found.setdefault(command, str(path.relative_to(SOURCE)))
    return sorted(found.items())


@pytest.mark.parametrize(("command", "where"), suggested())
def test_a_suggested_command_is_taken(command, where):
    """A sentence may leave out arguments, and options where it only names a command: what is there must be right."""
    try:
        assert_taken(NUMBER.sub("1", command))
    except IndexError:
        assert isinstance(cli.get_command(click.Context(cli), command.removeprefix("kops ")), click.Group), (command, where)
    except click.MissingParameter as missing:
        assert missing.param is not None
        assert missing.param.param_type_name == "argument" or re.fullmatch(r"kops(?: [a-z-]+){1,3}", command), (command, where)
    except click.exceptions.Exit:  # --help
        pass
    except click.UsageError as wrong:
        raise AssertionError(f"{where}: {command}: {wrong.format_message()}") from wrong


def test_there_are_many():
    assert len(suggested()) > 80


def test_no_text_sends_to_another_tool():
    """Help texts of commands count as texts, although they are docstrings."""
    found = [
        f"{path.relative_to(SOURCE)}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        for source in [path.read_text(encoding="utf-8")]
        if any(tool in source for tool in (*OTHER_TOOLS, ".sh"))
        for tree in [ast.parse(source)]
        for text in (*texts(tree), *helps(tree))
        if OTHER_TOOL.search(text) and text not in NO_ADVICE
    ]
    assert not found, "\n".join(found)
