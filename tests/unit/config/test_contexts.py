import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kops.config.contexts import HEADER, remove_context, save_context, secret_file, use_context, write_secret
from kops.config.load import read_config
from kops.config.paths import Directories
from kops.core.errors import ConfigError, NotFound
from kops.core.secret_shapes import is_secret_name

MINE = """# my clusters
current = "dev" # for now

# the test cluster
[contexts.dev]   # do not touch
bootstrap_servers = ["dev:9092"]
timeout = 5  # slow

[contexts.prod]
bootstrap_servers = [
    "prod-1:9092",  # rack a
    "prod-2:9092",
]
protected = true

[contexts.prod.client]
"socket.timeout.ms" = "7000" # long
"""


@pytest.fixture
def places(tmp_path):
    return folders(tmp_path)


def folders(path):
    return Directories(config=path / "config", state=path / "state", cache=path / "cache", data=path / "data")


def write(places, text):
    places.config.mkdir(parents=True, exist_ok=True)
    places.config_file.write_text(text)


def test_the_first_context_makes_the_file(places):
    save_context(places, "dev", {"bootstrap_servers": ("dev:1",), "username": None, "spark": {"conf": {}}}, current=True)
    assert places.config_file.read_text() == HEADER + 'current = "dev"\n\n[contexts.dev]\nbootstrap_servers = ["dev:1"]\n'
    assert stat.S_IMODE(places.config_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(places.config.stat().st_mode) == 0o700


def test_comments_and_other_contexts_survive(places):
    write(places, MINE)
    save_context(places, "dev", {"bootstrap_servers": ["dev:9092"], "timeout": 6, "read_only": True})
    save_context(places, "third", {"bootstrap_servers": ["t:1"], "client": {"a.b": "c"}})
    use_context(places, "third")
    text = places.config_file.read_text()
    assert text.startswith('# my clusters\ncurrent = "third" # for now\n')
    for kept in (
        "# the test cluster\n[contexts.dev]   # do not touch\n",
        "timeout = 6  # slow",
        '    "prod-1:9092",  # rack a\n',
        "# long",
    ):
        assert kept in text
    found = read_config(places)
    assert found.contexts["dev"] == {"bootstrap_servers": ["dev:9092"], "timeout": 6, "read_only": True}
    assert found.contexts["third"] == {"bootstrap_servers": ["t:1"], "client": {"a.b": "c"}}
    remove_context(places, "dev")
    remove_context(places, "third")
    assert read_config(places).current is None
    assert list(read_config(places).contexts) == ["prod"]
    assert "# rack a" in places.config_file.read_text()


def test_current_is_put_where_no_table_has_begun(places):
    for head in ("", "# only\n# a comment\n\n", "\n\n", "# belongs to the table\n"):
        write(places, head + '[contexts.a]\nbootstrap_servers = ["a:1"]\n')
        use_context(places, "a")
        assert read_config(places).current == "a"
        assert head.strip() in places.config_file.read_text()


def test_a_wrong_context_changes_nothing(places):
    write(places, MINE)
    for name, table in {
        "a b": {},
        "x": {"usrname": "u"},
        "y": {"password": "geheim"},
        "z": {"client": {"sasl.password": "geheim"}},
    }.items():
        with pytest.raises(ConfigError) as refused:
            save_context(places, name, table)
        assert "geheim" not in str(refused.value)
    for change in (use_context, remove_context):
        with pytest.raises(NotFound, match="there is no context 'nope'"):
            change(places, "nope")
    assert places.config_file.read_text() == MINE


def test_a_damaged_file_is_not_replaced(places):
    write(places, MINE + "[broken")
    with pytest.raises(ConfigError, match="is not TOML"):
        save_context(places, "x", {"bootstrap_servers": ["x:1"]})
    assert places.config_file.read_text() == MINE + "[broken"


def test_a_linked_file_stays_linked(places, tmp_path):
    real = tmp_path / "dotfiles.toml"
    real.write_text(MINE)
    places.config.mkdir()
    places.config_file.symlink_to(real)
    use_context(places, "prod")
    assert places.config_file.is_symlink()
    assert 'current = "prod"' in real.read_text()


def test_a_folder_that_cannot_be_made(places):
    places.config.write_text("a file where the folder should be")
    with pytest.raises(ConfigError, match="cannot write"):
        save_context(places, "x", {"bootstrap_servers": ["x:1"]})


def test_many_at_once_lose_nothing(places):
    threads = [threading.Thread(target=save_context, args=(places, f"c{at}", {"bootstrap_servers": [f"c{at}:1"]})) for at in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(read_config(places).contexts) == {f"c{at}" for at in range(12)}


def test_own_secret_files_go_with_the_context_and_others_stay(places, tmp_path):
    foreign = tmp_path / "password"
    foreign.write_text("x")
    own = write_secret(places, "a", "password", "geheim")
    assert own == str(secret_file(places, "a", "password"))
    assert stat.S_IMODE(Path(own).stat().st_mode) == 0o600
    save_context(places, "a", {"bootstrap_servers": ["a:1"], "password_file": own})
    save_context(places, "b", {"bootstrap_servers": ["b:1"], "password_file": str(foreign)})
    assert [str(file) for file in remove_context(places, "a")] == [own]
    assert remove_context(places, "b") == ()
    assert foreign.exists()
    assert not Path(own).exists()


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=15).filter(str.strip)
SCALARS = st.one_of(TEXT, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))
KEYS = TEXT.map(lambda text: "x-" + text).filter(lambda name: not is_secret_name(name))
TABLES = st.fixed_dictionaries(
    {"bootstrap_servers": st.lists(TEXT, min_size=1, max_size=3)},
    optional={
        "username": TEXT,
        "protected": st.booleans(),
        "timeout": st.integers(1, 10**6),
        "password_command": TEXT,
        "client": st.dictionaries(KEYS, SCALARS, min_size=1, max_size=3),
        "spark": st.fixed_dictionaries({}, optional={"master": TEXT, "conf": st.dictionaries(KEYS, SCALARS, min_size=1, max_size=2)}),
    },
)
STEPS = st.lists(st.tuples(st.sampled_from(["save", "save current", "use", "remove"]), NAMES, TABLES), max_size=8)


@settings(deadline=None, max_examples=60)
@given(start=st.sampled_from(["", MINE]), steps=STEPS)
@pytest.mark.slow
def test_any_sequence_of_changes_reads_back(tmp_path_factory, start, steps):
    places = folders(tmp_path_factory.mktemp("contexts"))
    write(places, start)
    contexts, current = dict(read_config(places).contexts), read_config(places).current
    for step, name, table in steps:
        if step.startswith("save"):
            save_context(places, name, table, current="current" in step)
            contexts[name] = {key: value for key, value in table.items() if value != {}}
            current = name if "current" in step else current
        elif step == "use" and contexts:
            current = min(contexts)
            use_context(places, current)
        elif contexts:
            gone = max(contexts)
            remove_context(places, gone)
            del contexts[gone]
            current = None if current == gone else current
        found = read_config(places)
        assert (found.contexts, found.current) == (contexts, current)
