"""What random programs keep between records, or read around them, beside what they compute (``Keeping.java``)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from support.generated_stores import Made
from support.programs import Program, Several

KEPT = ("counter", "map", "last", "greatest", "cache", "seen", "first", "static", "static-map", "singleton", "thread", "written")
READ = ("property", "variable", "file", "zone", "locale", "charset", "day", "nanos", "random", "rarely", "identity")
HARMLESS = ("memo", "metric")
_SHARE = 0.85
"""Of the programs that keep or read something."""
_ZONES = ("Asia/Tokyo", "America/St_Johns", "UTC", "Pacific/Chatham")
_LOCALES = ("de-DE", "tr-TR", "en-US", "fr-FR")


def keeping(random_: random.Random, made: Made, file: Path) -> Made:
    """Return an application of which most programs keep something, or read it.

    :param file: that some of them read
    """
    assert isinstance(made.specification, Several)
    programs = tuple(_keeping(random_, program, file) for program in made.specification.programs)
    return replace(made, specification=replace(made.specification, programs=programs))


def _keeping(random_: random.Random, program: Program, file: Path) -> Program:
    kind = random_.choice(random_.choice((KEPT, KEPT, READ, READ, HARMLESS)))
    if random_.random() > _SHARE or program.kind == "table":
        return program
    adds = program.kind != "count" and not program.window and random_.random() < 0.5
    return replace(program, keeps=(("kind", kind), ("effect", "add" if adds else "filter"), ("file", str(file))))


def surroundings(random_: random.Random) -> Mapping[str, str]:
    """Return variables of an environment in which programs read other things than elsewhere."""
    language, _, country = random_.choice(_LOCALES).partition("-")
    charset = random_.choice(("UTF-8", "ISO-8859-1", "US-ASCII"))
    options = [f"-Duser.language={language}", f"-Duser.country={country}", f"-Dfile.encoding={charset}"]
    options += [f"-Dkops.generated={random_.randrange(1, 9)}"] if random_.random() < 0.7 else []
    variable = {"KOPS_GENERATED": str(random_.randrange(1, 9))} if random_.random() < 0.7 else {}
    return {"TZ": random_.choice(_ZONES), "JAVA_TOOL_OPTIONS": " ".join(options), **variable}
