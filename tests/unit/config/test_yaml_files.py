"""YAML that people write: whatever it says, it is read, or refused with the file and the line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.config.yaml_files import parse_documents, placed_documents, read_documents
from kops.core.errors import ConfigError, ExitCode, UsageProblem
from kops.operations.connect.files import read_declaration
from kops.operations.engine.state_files import read_state_file
from kops.operations.offsets.files import _positions

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


AS_WRITTEN = (
    *("0100", "007", "12:30", "on", "off", "yes", "no", "y", "1_000", "1e3", "0x1F", "0o17", "0b1", "1.50", ".inf", "+1", "="),
    *("2026-11-20", "2026-99-99", "2026-11-20T10:00:00Z", "2026-11-20 10:00:00.5 +1", "!!int 0100", "!!float 1.0"),
)


@pytest.mark.parametrize("written", AS_WRITTEN)
def test_scalars_are_the_texts_as_written(written):
    text = written.rpartition("!!")[2].partition(" ")[2] if written.startswith("!!") else written
    for as_written in (False, True):
        assert parse_documents(f"a: {written}\n", "f", as_written=as_written) == [{"a": text}]
        assert parse_documents(f"- {written}\n", "f", as_written=as_written) == [[text]]
    assert parse_documents(f"{text}: a\n", "f") == [{text: "a"}]


def test_true_false_and_null_are_those_of_the_core_schema():
    text = "[true, False, TRUE, null, ~, Null, '', 'true', nUll, tRue]"
    assert parse_documents(text, "f") == [[True, False, True, None, None, None, "", "true", "nUll", "tRue"]]
    assert parse_documents(text, "f", as_written=True) == [["true", "False", "TRUE", None, None, None, "", "true", "nUll", "tRue"]]
    assert parse_documents("a:\nb: !!null\n", "f") == [{"a": None, "b": None}]


def test_mappings_are_merged():
    text = "a: &a {x: 1, y: 2}\nb: {c: {d: &d {<<: *a, x: 3}}}\ne: {<<: *d, z: 4}\n"
    assert parse_documents(text, "f")[0]["e"] == {"x": "3", "y": "2", "z": "4"}


def test_aliases_that_multiply_are_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))]
    with pytest.raises(ConfigError, match="line 7: not YAML: its aliases make more than 2000000 nodes"):
        parse_documents("\n".join(lines), "f.yaml")
    with pytest.raises(ConfigError, match="line 1: not YAML: a contains itself"):
        parse_documents("&a [*a]", "f.yaml")
    with pytest.raises(ConfigError, match="contains itself"):  # whatever lay at the same place in memory before
        parse_documents("---\n".join(["- [[x, y], z]\n"] * 9 + ["0100: &a [*a]\n"]), "f.yaml")


def test_a_byte_order_mark_is_no_character(tmp_path):
    (tmp_path / "f.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_documents(tmp_path / "f.yaml") == [{"a": "1"}]


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
        "a:\n  b: !!int 0x_\n": "f.yaml, line 2: not YAML: '0x_' is not a valid int",
        "a: 1\nb: \x07": "f.yaml, line 2: not YAML: the character U+0007 has to be escaped",
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
            lambda: list(placed_documents(file)),
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
