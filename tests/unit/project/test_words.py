"""The phrases that docs/glossary.md replaces stay out of the code and the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BANNED = {
    r"\banew\b": "again, or a verb with re-",
    r"\bgone on with\b|\bgo(?:es)? on (?:with|from|as|until|where|after|when)\b": "continue, resume",
    r"\btak(?:e|es|en|ing) back\b|\btook back\b": "undo, roll back",
    r"\b(?:take|takes|taken|taking|leave|left) away\b": "remove",
    r"\bas it should be\b|\bis so already\b|\balready so\b": "up to date, already set",
    r"\b(?:is|are) to be had\b|\bhad together\b": "is available, are mutually exclusive",
    r"\btold\b|\btells (?:of|that|whether|how|what|where|why)\b|\bTell whether\b": "reports, shows, whether",
    r"\ball hope\b": "cannot be recovered",
    r"\bnobody (?:reads|looks|tells|knows|sees)\b": "has no consumers, is not shown to anyone",
    r"\blikewise\b": "in the same way",
    r"\bso (?:long|many)\b(?! as| ago)": "this long, this many",
    r"(?<!here )\b(?:is|are) no (?!longer\b|more\b)|(?<!here )\bis none\b": "is not a",
    r"\bmend(?:s|ed|ing)?\b": "fix, repair",
    r"\bnevertheless\b": "to proceed anyway",
    r"\b(?:is|are|was|were) said\b": "is reported, is stated",
    r"\brefused until --": "refused unless --x is given",
    r"\bany more\b": "no longer",
    r"\bDeleted are\b|\bRead are\b": "deletes, reads",
    r"\btestif(?:y|ies|ied)\b|\ba way back\b": "count as evidence, undo",
    r"\bsought\b|\bwish(?:es|ed)?\b": "request, target",
    r"\boddit(?:y|ies)\b": "warnings",
    r"\b(?:is|are|was|were) looked at\b|\blooks? until\b": "check, poll",
    r"\bone (?:length|row|line|object|document|file|folder) a \w+": "one per x",
}
PAGES = (
    "*.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "examples/**/*.yaml",
    *(f"{folder}/**/*.{kind}" for folder in ("java", "examples", "plugins", "tests") for kind in ("py", "java")),
)
LISTS = {"glossary.md", "test_words.py", "test_samples.py"}
"""The files that name the phrases themselves."""


def clean_files():
    """Return the files that are free of them, by folder: a test for each file would take ten seconds longer."""
    files = [*(ROOT / "src" / "kops").rglob("*.py"), *(file for pattern in PAGES for file in ROOT.glob(pattern))]
    found = {}
    for file in sorted(files):
        if file.name not in LISTS:
            found.setdefault("/".join(file.relative_to(ROOT).parts[:-1][:3]) or "README", []).append(file)
    return found


@pytest.mark.parametrize("files", clean_files().values(), ids=clean_files())
def test_banned_phrases_stay_out(files):
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]!r}: write: {better}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for phrase, better in BANNED.items()
        if (match := re.search(phrase, line))
    ]
    assert not found, "\n".join(found)


def test_banned_phrases_are_recognized():
    examples = ("made anew", "what was told", "is no number", "had together", "so many groups", "any more", "one row a connector")
    assert all(any(re.search(phrase, example) for phrase in BANNED) for example in examples)
    assert not any(re.search(phrase, "there is no topic; as many as wanted; no longer") for phrase in BANNED)
