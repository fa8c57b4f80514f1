import pytest
from hypothesis import given
from hypothesis import strategies as st
from javaproperties import dumps as format_properties

from kops.config.jaas import LOGIN_MODULES, format_jaas, parse_jaas
from kops.core.errors import ConfigError

from .java_check import ask_java

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)
PASSWORDS = [
    "simple",
    'quo"te',
    "back\\slash",
    "\\",
    '\\"',
    "a;b=c",
    "it's",
    "//no comment",
    "/* no */",
    "line\nend\rs\ttab",
    "é€😀",
    " ",
    "\\n",
    "\\101",
    "${x}",
]
LINES = {
    "double": 'M required username="alice" password="x";',
    "single": "M required username='ali ce' password='a\"b';",
    "bare": "M required username=alice password=pass-word_1$;",
    "escapes": 'M required username="a\\tb\\101\\q\\\\" password="\\"";',
    "comments": 'M /* why */ required // who\n username="a"\n password="b" ;',
    "sufficient": 'M sufficient serviceName="kafka" username="a";',
    "tight": 'M required username="a"password="b";',
}


def test_java_reads_what_is_written(kafka_jar_files, tmp_path):
    module = LOGIN_MODULES["PLAIN"]
    lines = {f"p{at}": format_jaas(module, {"username": "alice", "password": password}) for at, password in enumerate(PASSWORDS)}
    file = tmp_path / "jaas.properties"
    file.write_text(format_properties(lines))
    answer = ask_java("jaas", [file], kafka_jar_files)["jaas.properties"]
    assert [answer[f"p{at}.password"] for at in range(len(PASSWORDS))] == PASSWORDS
    assert answer["module"] == module


def test_lines_are_read_as_java_reads_them(kafka_jar_files, tmp_path):
    files = [tmp_path / name for name in LINES]
    for file in files:
        file.write_text(format_properties({"line": LINES[file.name]}))
    answers = ask_java("jaas", files, kafka_jar_files)
    for file in files:
        found = parse_jaas(LINES[file.name])
        assert {f"line.{key}": value for key, value in found.options.items()} | {"module": found.module} == answers[file.name]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('M required username="first"; N required username="second";', "more than one login module"),
        ('M required username="a"', "no semicolon ends it"),
        ("M needed;", "required, requisite, sufficient or optional"),
        ("M required password=1geheim;", "an option has no value"),
        ("M required password=ge!heim;", "an option has no value"),
        ("/* M required; */", "names no login module"),
    ],
)
def test_the_reason_of_a_refusal(line, reason):
    with pytest.raises(ConfigError, match=reason):
        parse_jaas(line)


@given(st.dictionaries(st.sampled_from(["username", "password", "clientId"]), TEXT, max_size=3))
def test_round_trip(options):
    found = parse_jaas(format_jaas("a.b.Module", options))
    assert (found.module, found.options) == ("a.b.Module", options)


@pytest.mark.parametrize(
    "line",
    ["", ";", "geheim", 'M required password="geheim"', 'M required password="geheim;', "M required geheim;", 'M required "geheim"="x"=;'],
)
def test_what_is_no_jaas_line_is_refused_without_repeating_it(line):
    with pytest.raises(ConfigError) as refused:
        parse_jaas(line)
    assert "geheim" not in str(refused.value) + str(refused.value.hint)


def test_repr_has_no_secret():
    assert "geheim" not in repr(parse_jaas('M required password="geheim";'))
