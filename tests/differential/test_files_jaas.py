"""JAAS lines are read as Kafka's ``JaasContext`` reads them, and refused where it refuses them."""

import pytest

from kops.config.jaas import parse_jaas
from kops.core.errors import ConfigError
from support.java_judge import COUNTS, portions, random_of, text_of_units

MODULES = ("M", "org.apache.kafka.common.security.plain.PlainLoginModule", '"M"', "'a b'", "M-1", "é", '""', "", "required", "=", "\x81")
FLAGS = ("required", "REQUIRED", "Requisite", "sufficient", "optional", '"required"', "'optional'", "needed", "", "=", ";")
NAMES = ("username", "password", "debug", "a.b", '"a b"', "'x'", "a-1", "1", "é", "=", "/", "", "serviceName")
VALUES = (
    *(
        '"secret"',
        "'secret'",
        "secret",
        "true",
        "12",
        "1.5",
        "pass-word_1$",
        '""',
        "''",
        '"a\\"b"',
        "'a\"b'",
        '"a\\\\"',
        '"\\n\\t\\q\\a\\v"',
    ),
    *('"\\101\\0\\377\\477\\78"', '"a;b=c"', '"//x"', '"/* x */"', "a/b", "a//b", "a/*b*/", "é€😀", "\x80", "\x85", "\x9f", "\xa0", "\\n"),
    *('"open', "'open\n", '"a\nb"', '"a\\\nb"', '"a" "b"', "=", ";", "", "${x}", "a,b", "a b", '"\\', "'it''s'", '"a"b', "#x", "!x"),
    *("1a", "-a", "-1", "-", ".5", "1.2.3", "..", "a!b", "p@ss", "a\\b", "a:b", "_x", "$x", "a+b", "[x]", "x~"),
)
BETWEEN = (" ", " ", " ", "  ", "\t", "\n", "\r\n", "\x01", " // who\n", " /* why */ ", "/x\n", "/\n\n", "/*/ */", "", "/* open", "//")


def line_of(random):
    def between():
        return random.choice(BETWEEN) if random.random() < 0.3 else " "

    def pick(texts, certain):
        return random.choice(texts) if random.random() < 0.5 else random.choice(texts[:certain])

    def module():
        options = "".join(
            f"{pick(NAMES, 8)}{random.choice(('=', '=', '=', ' = ', between()))}{pick(VALUES, 20)}{between()}"
            for _ in range(random.randint(0, 3))
        )
        return f"{pick(MODULES, 5)}{between()}{pick(FLAGS, 7)}{between()}{options}{random.choice((';', ';', ';', ' ;', '', ';;'))}"

    return random.choice(("", "", " ", "/* c */")) + "".join(module() for _ in range(random.choice((1, 1, 1, 1, 1, 2, 0)))) + between()


@pytest.mark.parametrize("count", COUNTS)
def test_jaas(java_judge, count):
    read = 0
    for lines in portions(line_of(each) for each in random_of("jaas", count)):
        for line, answer in zip(lines, java_judge.ask("JaasLines", lines), strict=True):
            try:
                found = parse_jaas(line)
            except ConfigError as refused:
                assert "error" in answer, (line, refused.message, answer)
                continue
            assert "ok" in answer, (line, found.module, dict(found.options), answer)
            module, *options = answer["ok"]
            assert found.module == text_of_units(module), ascii(line)
            assert found.options == {text_of_units(name): text_of_units(value) for name, value in options}, ascii(line)
            read += 1
    assert read > count // 10
