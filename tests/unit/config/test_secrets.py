import copy
import dataclasses
import json
import pickle
import traceback

import pytest

from kops.config.connection import Connection
from kops.config.secrets import exposure, from_command, from_environment, from_file, from_value, run_command
from kops.core.errors import ConfigError

WORD = "geheim-4711"


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "password"
    file.write_text(f"{WORD}\n")
    file.chmod(0o600)
    return from_file(file)


def test_nothing_but_reveal_gives_it_away(secret):
    assert secret.reveal() == WORD
    connection = Connection(("a:1",), password=secret)
    shown = [repr(secret), str(secret), f"{secret}", repr(connection), str(dataclasses.asdict(connection)), repr(copy.deepcopy(secret))]
    shown += [json.dumps(connection.password, default=str), repr(vars(type(secret)))]
    assert not [text for text in shown if WORD in text]
    with pytest.raises(TypeError):
        json.dumps(secret)
    with pytest.raises(TypeError, match="not serialised"):
        pickle.dumps(connection)


def test_only_the_line_end_is_taken_off(tmp_path):
    file = tmp_path / "password"
    for content, value in {" a b \n": " a b ", "x\r\n": "x", "x\n\n": "x\n", "x": "x"}.items():
        file.write_bytes(content.encode())
        assert from_file(file).reveal() == value


def test_a_missing_empty_or_binary_file_is_named(tmp_path):
    file = tmp_path / "password"
    secret = from_file(file)  # nothing is read before it is needed
    for content, message in {None: "cannot read the secret in", b"\n": "is empty", b"\xff\xfe" + WORD.encode(): "not UTF-8"}.items():
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConfigError, match=message) as refused:
            secret.reveal()
        trace = "".join(traceback.format_exception(refused.value))
        assert str(file) in str(refused.value)
        assert WORD not in trace


def test_environment():
    assert from_environment("MY_PASSWORD", {"MY_PASSWORD": WORD}).reveal() == WORD
    with pytest.raises(ConfigError, match="MY_PASSWORD is not set"):
        from_environment("MY_PASSWORD", {}).reveal()


def test_commands_run_without_a_shell(tmp_path):
    assert from_command(f"printf '%s\\n' '{WORD}'").reveal() == WORD
    assert from_command("echo $HOME | cat").reveal() == "$HOME | cat"
    assert str(from_command(f"pass show {WORD}")) == "(set, from command pass)"


def test_commands_that_fail_say_so_without_arguments_or_output():
    for command, message in {
        f"sh -c 'echo {WORD}; echo {WORD} >&2; exit 3'": "exit code 3",
        f"/nowhere/pass {WORD}": "cannot run the command /nowhere/pass",
        f"sh -c 'unclosed {WORD}": "split into words",
        "": "cannot run",
        "true": "is empty",
        "printf '\\377'": "not UTF-8",
    }.items():
        with pytest.raises(ConfigError, match=message) as refused:
            from_command(command).reveal()
        assert WORD not in "".join(traceback.format_exception(refused.value)) + str(refused.value.hint)


def test_commands_end_in_time():
    with pytest.raises(ConfigError, match=r"took longer than 0.2 s"):
        run_command("sleep 60", 0.2)


def test_others_who_can_read_it(tmp_path):
    file = tmp_path / "password"
    file.write_text("x")
    for mode, warns in {0o600: False, 0o640: False, 0o644: True, 0o606: True}.items():
        file.chmod(mode)
        assert bool(exposure(file)) is warns, oct(mode)
    file.chmod(0o644)
    assert exposure(file, holds_secret=False) is None
    file.chmod(0o666)
    assert "can be changed by everybody" in (exposure(file, holds_secret=False) or "")
    assert exposure(tmp_path / "nowhere") is None


def test_a_value_of_another_file():
    assert from_value("file client.properties", WORD).reveal() == WORD
    assert str(from_value("file client.properties", WORD)) == "(set, from file client.properties)"
