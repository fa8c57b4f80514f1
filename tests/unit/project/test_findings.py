"""docs/verdicts.md lists the findings about stores that the source makes: each code, the words that it leads to, and what settles it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import kops
from kops.core.streams import verdict

SOURCE = Path(kops.__file__).parent
PAGE = Path(__file__).parents[3] / "docs" / "verdicts.md"
WORDS = {"doubt": verdict.DOUBTFUL, "obstacle": verdict.IMPOSSIBLE, "remark": "remark", "notice": "notice"}
CODE = re.compile(r"`([a-z_]+)`")
TEXTS = (verdict.KEYS_ANYWHERE, verdict.KEYS_THERE, verdict.ALL_KEYS)


@dataclass(frozen=True)
class Maker:
    """A function that makes a finding of its first argument.

    :param words: that its findings lead to
    :param settled_by: the constant that says so where a call says nothing else
    """

    words: frozenset[str]
    settled_by: str = ""


@dataclass
class Made:
    """The findings of a module: codes with their words, codes with what settles them, calls whose code is not a text.

    A code of which a part is filled in is a pattern.
    """

    words: set[tuple[str, str]] = field(default_factory=set)
    settled: set[tuple[str, str]] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)


def made_in(source: str) -> Made:
    tree = ast.parse(source)
    imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom) and each.module == verdict.__name__]
    makers = {
        name.asname or name.name: Maker(frozenset({WORDS[name.name]})) for each in imports for name in each.names if name.name in WORDS
    }
    passing = _passing(tree, makers)
    makers |= passing
    made = Made()
    for call, function in calls(tree):
        named = [makers[name.id] for name in ast.walk(call.func) if isinstance(name, ast.Name) and name.id in makers]
        if not named or not call.args or (function is not None and function.name in passing):
            continue
        if code := _pattern(call.args[0]):
            made.words |= {(code, word) for each in named for word in each.words}
            said = [each.value.id for each in call.keywords if each.arg == "settled_by" and isinstance(each.value, ast.Name)]
            made.settled |= {(code, getattr(verdict, name)) for name in said or [each.settled_by for each in named] if name}
        else:
            made.unread.append(f"line {call.lineno}: {ast.unparse(call)[:80]}")
    return made


def _pattern(code: ast.expr) -> str:
    parts = code.values if isinstance(code, ast.JoinedStr) else [code]
    texts = [str(part.value) if isinstance(part, ast.Constant) else "[a-z]+" for part in parts]
    return "".join(texts) if isinstance(code, (ast.JoinedStr, ast.Constant)) else ""


def _passing(tree: ast.Module, makers: Mapping[str, Maker]) -> dict[str, Maker]:
    """Return the functions that pass their first parameter on as the code of a finding."""
    found = {}
    for call, function in calls(tree):
        is_maker = isinstance(call.func, ast.Name) and call.func.id in makers
        if function and is_maker and call.args and function.args.args and ast.unparse(call.args[0]) == function.args.args[0].arg:
            defaults = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
            settled_by = [value.id for arg, value in defaults if arg.arg == "settled_by" and isinstance(value, ast.Name)]
            found[function.name] = Maker(makers[ast.unparse(call.func)].words, *settled_by)
    return found


def calls(tree: ast.AST, function: ast.FunctionDef | None = None) -> Iterator[tuple[ast.Call, ast.FunctionDef | None]]:
    """Yield all calls, each with the function that it is in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call):
            yield node, function
        yield from calls(node, node if isinstance(node, ast.FunctionDef) else function)


def in_source() -> Made:
    found = Made()
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if verdict.__name__ in text:
            made = made_in(text)
            found.words |= made.words
            found.settled |= made.settled
            found.unread += [f"{path.relative_to(SOURCE)}: {each}" for each in made.unread]
    return found


def rows(heading: str, ending: str) -> Iterator[list[str]]:
    text = PAGE.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2].partition(ending)[0]
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def in_table() -> list[tuple[str, str]]:
    found = rows("## Findings", "\n## ")
    return [(code, word) for first, words, *_ in found for code in CODE.findall(first) for word in re.split(r", | or ", words)]


def test_each_finding_is_listed_with_the_words_that_it_leads_to():
    made, listed = in_source(), in_table()
    matched = {each: {row for row in listed if row[1] == each[1] and re.fullmatch(each[0], row[0])} for each in made.words}
    missing = [each for each, some in matched.items() if not some]
    assert not made.unread, "write the code into the call, or take it as the first parameter and pass it on"
    assert len(listed) == len(set(listed))
    assert {"not listed": missing, "not made": set(listed).difference(*matched.values())} == {"not listed": [], "not made": set()}


def test_what_settles_a_finding_is_listed():
    settling = rows("## What settles a finding", "\n## ")
    listed = {(code, text) for text, _, codes in settling for code in CODE.findall(codes) if text in TEXTS}
    assert listed == in_source().settled


def test_codes_are_found_however_a_finding_is_made():
    made = made_in(
        f"from {verdict.__name__} import doubt, remark, ALL_KEYS, KEYS_THERE\n"
        "def first(): return [_own('a', ''), _own('b', '', settled_by=KEYS_THERE)]\n"
        "def _own(check, said, *, settled_by=ALL_KEYS): return doubt(check, said, settled_by=settled_by)\n"
        "c = (remark if first else doubt)('c', '')\n"
        "d = [doubt(each, '') for each in first()]\n"
        "e = [remark(f'{each}_e', '') for each in first()]\n"
    )
    assert made.words == {("a", "doubtful"), ("b", "doubtful"), ("c", "doubtful"), ("c", "remark"), ("[a-z]+_e", "remark")}
    assert made.settled == {("a", verdict.ALL_KEYS), ("b", verdict.KEYS_THERE)}
    assert made.unread == ["line 5: doubt(each, '')"]
