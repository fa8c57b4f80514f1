"""Where a program has other surroundings than when it was captured."""

import json
from dataclasses import replace

import pytest

from kops.core.streams.surroundings import (
    FILE,
    HOST,
    PROPERTY,
    VARIABLE,
    Difference,
    Read,
    Surroundings,
    before_start,
    digest_of,
    while_it_ran,
)

APP = "orders"
LOCALE = {"user.language": "en", "user.country": "", "user.script": "", "user.variant": ""}


def of(kind, name, value):
    return None if value is None else digest_of(APP, kind, name, value)


def read(kind, name, value, how="name"):
    return Read(kind, name, of(kind, name, value), "com.acme.App", how)


def captured(*reads, options=(), properties=()):
    values = {name: of(PROPERTY, name, value) for name, value in dict(properties).items()}
    variables = {each.name: each.digest for each in reads if each.kind == VARIABLE and each.digest}
    return Surroundings("US-ASCII", "Europe/Berlin", "17", LOCALE, tuple(options), variables, values, reads)


def now(then, *reads, **other):
    facts = {"charset": then.charset, "zone": then.zone, "java": then.java, "locale": {**then.locale}}
    facts |= {"unseen": None}
    return json.dumps({**facts, **other, "read": [vars(each) for each in reads]})


def found(then, environment, command=("java", "App"), files=(), host="one"):
    there = dict(files)
    differences = before_start(APP, then, command, environment, host=host, digest_of_file=lambda path: of(FILE, path, there.get(path)))
    return [(each.code, each.name) for each in differences]


@pytest.mark.parametrize(
    ("then", "value", "code"),
    [
        ("5", None, "variable-missing"),
        (None, "5", "variable-new"),
        ("5", "6", "variable-differs"),
        ("5", "", "variable-differs"),
        ("5", "5", None),
        ("", "", None),
        (None, None, None),
    ],
)
def test_variables_that_were_read_are_compared(then, value, code):
    environment = {} if value is None else {"MIN": value}
    assert found(captured(read(VARIABLE, "MIN", then)), {**environment, "OTHER": "1"}) == ([(code, "MIN")] if code else [])


def test_what_only_a_login_sets_is_no_difference_for_who_copies_everything():
    names = ("SSH_CONNECTION", "SHLVL", "_", "PATH", "MIN")
    assert found(captured(*(read(VARIABLE, name, "5", "copy") for name in names)), {}) == [("variable-missing", "MIN")]
    assert found(captured(read(VARIABLE, "SHLVL", "5")), {}) == [("variable-missing", "SHLVL")]


def test_what_kops_sets_itself_is_no_difference():
    assert found(captured(read(VARIABLE, "SERVER_PORT", "-1"), read(VARIABLE, "JAVA_TOOL_OPTIONS", "-javaagent:a")), {}) == []


def test_a_secret_is_compared_by_whether_it_is_set():
    then = captured(read(VARIABLE, "DB_PASSWORD", "5"))
    assert then.variables == {"DB_PASSWORD": "set"}
    assert found(then, {"DB_PASSWORD": "6"}) == []
    assert found(then, {}) == [("variable-missing", "DB_PASSWORD")]


def test_digests_are_too_short_to_try_passwords_by():
    """Of 200,000 that are tried several fit: none stands out."""
    known = digest_of(APP, VARIABLE, "LEVEL", "150000")
    assert 1 < sum(digest_of(APP, VARIABLE, "LEVEL", str(tried)) == known for tried in range(200_000)) < 20


def test_properties_are_those_of_the_variables_with_options():
    then = captured(read(PROPERTY, "min", "5"), options=["-Dmin=5"], properties={"min": "5", "os.name": "Linux"})
    assert found(then, {}) == [("property-missing", "min")]
    assert found(then, {"JAVA_TOOL_OPTIONS": "-Dother=1 '-Dmin=5'"}) == []
    assert found(then, {"JAVA_TOOL_OPTIONS": "-Dmin=5", "_JAVA_OPTIONS": "-Dmin=6"}) == [("property-differs", "min")]
    assert found(then, {}, command=("java", "-Dmin=5", "App")) == []
    assert found(captured(read(PROPERTY, "min", None)), {"JDK_JAVA_OPTIONS": "-Dmin"}) == [("property-new", "min")]
    given_by_jvm = captured(read(PROPERTY, "os.name", "Linux"), properties={"os.name": "Linux"})
    assert found(given_by_jvm, {}) == []


def test_options_that_only_variables_gave_are_missed():
    then = captured(options=["-ea", "-Xmx1g", "-Dx=1", "--add-opens=a", "-javaagent:b"])
    assert found(then, {"JAVA_TOOL_OPTIONS": "--add-opens=a"}) == [("option-missing", "-ea")]


def test_files_that_were_read_are_compared():
    then = captured(read(FILE, "/a", "1"), read(FILE, "/b", "1"), read(FILE, "/c", None), read(FILE, "/d", None))
    assert found(then, {}, files={"/b": "2", "/c": "1"}) == [("file-missing", "/a"), ("file-differs", "/b"), ("file-new", "/c")]
    assert found(then, {}, files={"/a": "1", "/b": "1"}) == []


def test_what_is_read_while_records_are_processed_is_compared_with_all_that_was_set():
    then = replace(captured(properties={"min": "5"}), variables={"LATE": of(VARIABLE, "LATE", "5")})
    reads = (read(VARIABLE, "LATE", "6"), read(VARIABLE, "NEVER", None), read(PROPERTY, "min", None), read(FILE, "/a", "1"))
    differences = while_it_ran(then, [now(then, *reads), now(then, *reads)])
    assert [(each.code, each.name) for each in differences] == [
        ("variable-differs", "LATE"),
        ("property-missing", "min"),
        ("file-unknown", "/a"),
    ]
    assert while_it_ran(then, [now(then, read(VARIABLE, "LATE", "5"), read(PROPERTY, "min", "5"))]) == []


def test_the_name_of_the_host_is_compared_where_it_was_read():
    then = captured(read(HOST, "", "one"))
    assert (found(then, {}), found(then, {}, host="other")) == ([], [("host-differs", "")])
    assert while_it_ran(then, [now(then, read(HOST, "", "other"))])[0].text.startswith("the name of the host was another one")
    assert [each.code for each in while_it_ran(captured(), [now(captured(), read(HOST, "", "one"))])] == ["host-unknown"]


def test_what_the_jvm_says_of_itself_counts_by_its_release():
    then = captured(properties={"java.version": "17.0.1", "user.home": "/one", "java.io.tmpdir": "/tmp"}, options=["-Djava.io.tmpdir=/tmp"])
    reads = [read(PROPERTY, name, "other") for name in ("java.version", "user.home", "java.io.tmpdir")]
    differing = [each.name for each in while_it_ran(then, [now(then, *reads)])]
    assert differing == ["user.home", "java.io.tmpdir"]


def test_charset_zone_and_locale_are_compared():
    then = captured()
    other = now(then, charset="UTF-8", zone="UTC", java="21", locale={**LOCALE, "user.country": "US"})
    assert [each.text for each in while_it_ran(then, [other])] == [
        "the charset of the program's JVM was US-ASCII, and is UTF-8: start it as it was captured",
        "the time zone of the program's JVM was Europe/Berlin, and is UTC: start it as it was captured",
        "the Java of the program's JVM was 17, and is 21: start it as it was captured",
        "the locale of the program's JVM was language=en, and is country=US language=en: start it as it was captured",
    ]


def test_reads_that_could_not_be_seen_are_named():
    then = captured()
    (difference,) = while_it_ran(then, [now(then, unseen="java.io.FileInputStream: a new format")])
    assert difference.code == "reads-unknown"
    assert difference.text == "not all reads of variables and files by the program could be seen: java.io.FileInputStream: a new format"


def test_flags_give_another_jvm_the_same():
    assert captured().flags == (
        "-Dfile.encoding=US-ASCII",
        "-Duser.timezone=Europe/Berlin",
        "-Duser.country=",
        "-Duser.language=en",
        "-Duser.script=",
        "-Duser.variant=",
    )


def test_each_difference_is_one_line_with_what_to_do():
    said = Difference(VARIABLE, "missing", "MIN", "com.acme.App").text
    assert said == (
        "MIN was set when the program was captured (com.acme.App reads it): set it, or capture the program where the application runs"
    )
    said = Difference(PROPERTY, "differs", "min").text
    assert said.startswith("the system property min had another value when the program was captured: set that, or")
