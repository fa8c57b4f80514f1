"""The phrases that docs/glossary.md replaces stay out of the code and the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BANNED = {
    r"anew\b": "again, or a verb with re-",
    r"gone on with\b|go(?:es)? on (?:with|from|as|until|where|after|when)\b": "continue, resume",
    r"tak(?:e|es|en|ing) back\b|took back\b": "undo, roll back",
    r"(?:take|takes|taken|taking|leave|left) away\b": "remove",
    r"as it should be\b|is so already\b|already so\b": "up to date, already set",
    r"(?:is|are) to be had\b|had together\b": "is available, are mutually exclusive",
    r"told\b|tells (?:of|that|whether|how|what|where|why)\b|Tell whether\b": "reports, shows, whether",
    r"all hope\b": "cannot be recovered",
    r"nobody (?:reads|looks|tells|knows|sees)\b": "has no consumers, is not shown to anyone",
    r"likewise\b": "in the same way",
    r"so (?:long|many)\b(?! as| ago)": "this long, this many",
    r"(?<!here )(?:is|are) no (?!longer\b|more\b)|(?<!here )is none\b": "is not a",
    r"mend(?:s|ed|ing)?\b": "fix, repair",
    r"nevertheless\b": "to proceed anyway",
    r"(?:is|are|was|were) said\b": "is reported, is stated",
    r"refused until --": "refused unless --x is given",
    r"any more\b": "no longer",
    r"Deleted are\b|Read are\b": "deletes, reads",
    r"testif(?:y|ies|ied)\b|a way back\b": "count as evidence, undo",
    r"sought\b|wish(?:es|ed)?\b": "request, target",
    r"oddit(?:y|ies)\b": "warnings",
    r"(?<!found in what )(?:is|are|was|were) looked at\b|looks? until\b": "check, poll",
    r"one (?:length|row|line|object|document|file|folder) a \w+": "one per x",
}
"""What replaces each, by the phrase from the beginning of a word."""
PHRASES = re.compile(rf"\b(?:{'|'.join(BANNED)})")
"""All at once: a search for each phrase takes ten times as long, and one in each line twenty times."""
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
    found = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        for match in PHRASES.finditer(text):
            better = next(better for phrase, better in BANNED.items() if re.compile(phrase).match(text, match.start()))
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{file.relative_to(ROOT)}:{line}: {match[0]!r}: write: {better}")
    assert not found, "\n".join(found)


def test_banned_phrases_are_recognized():
    examples = ("made anew", "what was told", "is no number", "had together", "so many groups", "any more", "one row a connector")
    assert all(PHRASES.search(example) for example in examples)
    assert not PHRASES.search("there is no topic; as many as wanted; no longer")
