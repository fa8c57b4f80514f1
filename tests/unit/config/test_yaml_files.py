"""YAML that people write: whatever it says, it is read, or refused with the file and the line."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kops.config.yaml_files import parse_documents, read_documents
from kops.core.errors import ConfigError, ExitCode, UsageProblem
from kops.operations.connect.files import read_declaration
from kops.operations.engine.state_files import read_state_file
from kops.operations.offsets.files import _positions
from kops.operations.topics.declared import documents

STATE = """\
application: prices-app
guarantee: {}
stores:
  totals:
    source: {{topic: prices, key: string, value: long}}
    aggregate: count
"""
WORST = [
    *("2026-99-99", "2026-11-31", "9999-99-99T99:99:99Z", "0b_", "0x_", "!!int x", "!!timestamp x", "!!bool x", "!!float x"),
    *("!!binary é", "!!python/object:os.system x", "[" * 400, "{a: 1, a: 2}", "{[1]: 2}", "*nowhere", "&a [*a]", "%", "\x07"),
    *("!!set x", "!!omap x", "!!pairs x", "!!map x", "{<<: 1}", "{<<: [1]}", "1:99:99", "=", "."),
]
words = st.sampled_from([*WORST, "2026-11-20", "1", "a", "null", "true"])


@pytest.mark.parametrize("date", ["2026-11-20", "2026-99-99", "2026-11-31", "2026-11-20T10:00:00Z", "2026-11-20 10:00:00.5 +1"])
def test_dates_are_text(date):
    assert parse_documents(f"at: {date}\n? {date}\n: 1\n", "f") == [{"at": date, date: 1}]
    assert parse_documents(f"at: !!timestamp {date}\n", "f") == [{"at": date}]


PLAIN = ("0x1F", "1_000", "1.5", ".inf", "true", "null", "~", "'2026-11-20'", "[1, a]", "{a: {b: c}}", "|\n  x", "&a 1")


@pytest.mark.parametrize("written", PLAIN)
def test_everything_else_is_read_as_before(written):
    assert parse_documents(f"a: {written}\n", "f") == [yaml.safe_load(f"a: {written}\n")]


@pytest.mark.parametrize("text", WORST)
def test_the_worst_is_read_or_refused(text):
    try:
        parse_documents(f"a: {text}\n", "f.yaml")
    except ConfigError as refused:
        assert refused.exit_code == ExitCode.USAGE
        assert refused.message.startswith("f.yaml")
        assert "not YAML" in refused.message


def test_where_it_is_wrong():
    for text, message in {
        "a: 1\nb: 2\na: 3\n": "f.yaml, line 3: not YAML: a is given twice",
        "a:\n  b: 0x_\n": "f.yaml, line 2: not YAML: '0x_' is not a valid int",
        "b: 1\na: [": "f.yaml, line 2: not YAML",
    }.items():
        with pytest.raises(ConfigError) as refused:
            parse_documents(text, "f.yaml")
        assert refused.value.message.startswith(message)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the state file"):
        read_documents(tmp_path / "none.yaml", what="state file")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        read_documents(tmp_path / "latin.yaml")


@given(st.lists(words | st.text(max_size=5), min_size=1, max_size=4))
def test_no_file_ends_as_a_bug(tmp_path_factory, values):
    file = tmp_path_factory.mktemp("yaml") / "f.yaml"
    texts = [STATE.format(value) for value in values]
    texts.append("\n".join(f"- {{topic: a, position: {value}}}" for value in values))
    texts += [f"name: {values[0]}\nconfig: {{connector.class: x, tasks.max: {values[-1]}}}\n", f"name: t\npartitions: {values[0]}\n"]
    for text in texts:
        file.write_text(text, encoding="utf-8", errors="replace", newline="")
        for read in (
            lambda: read_state_file(str(file)),
            lambda: list(documents(file)),
            lambda: read_declaration([str(file)]),
            lambda text=text: _positions(text, file),
        ):
            try:
                read()
            except UsageProblem as refused:
                assert refused.exit_code == ExitCode.USAGE


def test_an_impossible_date_in_a_state_file_names_its_field(tmp_path):
    file = tmp_path / "state.yaml"
    file.write_text(STATE.format("2026-99-99"))
    with pytest.raises(ConfigError, match="guarantee"):
        read_state_file(str(file))


def test_a_state_file_is_one_document(tmp_path):
    file = tmp_path / "state.yaml"
    file.write_text(STATE.format("at-least-once") + "---\n" + STATE.format("at-least-once"))
    with pytest.raises(ConfigError, match="2 YAML documents"):
        read_state_file(str(file))


@pytest.mark.slow
def test_deep_nesting_is_refused():
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_documents("a: " + "[" * 1500, "f.yaml")
