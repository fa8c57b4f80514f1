import dataclasses
import json
import traceback
from pathlib import Path

import pytest

from kops.config.connection import Connection
from kops.config.load import require_brokers, resolve
from kops.config.paths import directories
from kops.config.schema import SETTINGS, Kind
from kops.core.errors import ConfigError

WORD = "geheim-4711"
CONFIG = """
current = "dev"

[contexts.dev]
bootstrap_servers = "dev:9092"
timeout = 5
connect_urls = ["http://connect-dev:8083"]

[contexts.prod]
bootstrap_servers = ["prod-1:9093", "prod-2:9093"]
security_protocol = "SASL_SSL"
sasl_mechanism = "SCRAM-SHA-512"
username = "alice"
password_file = "prod.password"
ca_file = "ca.pem"
timeout = 20
protected = true

[contexts.prod.client]
"socket.timeout.ms" = 7000

[contexts.prod.spark]
master = "spark://master:7077"
conf = { "spark.executor.memory" = "4g", "spark.ui.enabled" = false }
"""


@pytest.fixture
def load(home, monkeypatch):
    """Resolve with a configuration file and an environment: ``load(CONFIG, {...}, context="prod")``."""
    folder = home / "config" / "kops"
    folder.mkdir(parents=True)
    (folder / "prod.password").write_text(WORD)
    (folder / "prod.password").chmod(0o600)

    def run(config: str | None = CONFIG, environ: dict[str, str] | None = None, **flags) -> Connection:
        environment = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")} | (environ or {})
        if config is not None:
            (folder / "config.toml").write_text(config)
            (folder / "config.toml").chmod(0o600)
        return resolve(directories(environment), environment, **flags)

    run.folder = folder
    return run


def refused(load, *arguments, **flags) -> ConfigError:
    with pytest.raises(ConfigError) as error:
        load(*arguments, **flags)
    assert WORD not in "".join(traceback.format_exception(error.value)) + str(error.value.hint) + json.dumps(error.value.as_json())
    assert error.value.exit_code == 2
    return error.value


def test_the_current_context(load):
    found = load()
    assert (found.name, found.bootstrap_servers, found.timeout) == ("dev", ("dev:9092",), 5.0)
    assert found.sources == {"bootstrap_servers": "context dev", "timeout": "context dev", "connect_urls": "context dev"}


def test_a_whole_context(load):
    found = load(context="prod")
    folder = load.folder
    assert found.bootstrap_servers == ("prod-1:9093", "prod-2:9093")
    assert (found.security_protocol, found.sasl_mechanism, found.username) == ("SASL_SSL", "SCRAM-SHA-512", "alice")
    assert found.ca_file == str(folder / "ca.pem")  # relative to the file
    assert found.password is not None
    assert found.password.reveal() == WORD
    assert found.client == {"socket.timeout.ms": "7000"}
    assert found.spark.master == "spark://master:7077"
    assert found.spark.conf == {"spark.executor.memory": "4g", "spark.ui.enabled": "false"}
    assert found.protected
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("environ", "flags", "timeout", "source"),
    [
        ({}, {}, 5.0, "context dev"),
        ({"KOPS_CONTEXT": "prod"}, {}, 20.0, "context prod"),
        ({"KOPS_CONTEXT": "dev"}, {"context": "prod"}, 20.0, "context prod"),
        ({"KOPS_TIMEOUT": "9"}, {"context": "prod"}, 9.0, "environment KOPS_TIMEOUT"),
        ({"KOPS_TIMEOUT": "9"}, {"command_config": True}, 3.0, "client.properties"),
        ({}, {"bootstrap_servers": "x:1"}, 30.0, None),
    ],
)
def test_each_place_is_stronger_than_the_next(load, tmp_path, *, environ, flags, timeout, source):
    if flags.get("command_config"):
        flags["command_config"] = tmp_path / "client.properties"
        flags["command_config"].write_text("request.timeout.ms=3000\n")
    found = load(CONFIG, environ, **flags)
    assert found.timeout == timeout
    assert source is None or source in found.sources["timeout"]


def test_brokers_by_flag_environment_and_file(load, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\n")
    environ = {"KOPS_BOOTSTRAP_SERVERS": "environment:1"}
    everything = {"bootstrap_servers": "flag:1", "properties": ["bootstrap.servers=x:1"], "command_config": file, "context": "prod"}
    for weakest in ("bootstrap_servers", "properties", "command_config", None, "environ"):
        wanted = {"bootstrap_servers": "flag:1", "properties": "x:1", "command_config": "file:1", None: "environment:1"}.get(weakest)
        found = load(CONFIG, environ, **everything)
        if wanted:
            assert found.bootstrap_servers == (wanted,)
        everything.pop(weakest, None)
        if weakest is None:
            environ = {}
    assert found.bootstrap_servers == ("prod-1:9093", "prod-2:9093")


def test_brokers_by_hand_take_nothing_from_the_current_context(load):
    """Its password and its Connect address belong to another cluster."""
    for flags, environ in (({"bootstrap_servers": "x:1"}, {}), ({}, {"KOPS_BOOTSTRAP_SERVERS": "x:1"})):
        found = load(CONFIG.replace('current = "dev"', 'current = "prod"'), environ, **flags)
        assert found == Connection(("x:1",))
        assert not found.name


def test_brokers_by_hand_with_a_named_context_take_the_rest_from_it(load):
    found = load(CONFIG, {}, bootstrap_servers="tunnel:1", context="prod")
    assert (found.bootstrap_servers, found.username, found.protected) == (("tunnel:1",), "alice", True)
    environment = load(CONFIG, {"KOPS_BOOTSTRAP_SERVERS": "tunnel:1"}, context="prod")
    assert "KOPS_BOOTSTRAP_SERVERS is set and stronger than the brokers of context prod" in environment.warnings


def test_there_is_no_silent_localhost(load):
    assert "kops context add" in str(refused(load, None).hint)
    assert "known contexts: dev, prod" in str(refused(load, CONFIG.replace('current = "dev"', "")).hint)
    assert "KOPS_BOOTSTRAP_SERVER is not read" in str(refused(load, "", {"KOPS_BOOTSTRAP_SERVER": "x:1"}).hint)
    assert "contexts.dev has no bootstrap_servers" in str(refused(load, CONFIG.replace('bootstrap_servers = "dev:9092"', "")))


def test_connect_or_a_registry_alone_is_enough_until_brokers_are_asked(load):
    for name, url in (("connect_urls", "http://c:8083"), ("registry_url", "http://r:8081")):
        environ = {f"KOPS_{name.upper()}": url}
        found = load("", environ)
        assert (found.bootstrap_servers, found.label) == ((), url)
        with pytest.raises(ConfigError, match="no brokers are configured") as missing:
            require_brokers(found, directories({"HOME": str(load.folder.parents[1])}), environ)
        assert "kops context add" in str(missing.value.hint)
        assert load(CONFIG, environ).bootstrap_servers == ("dev:9092",)  # of the current context
        assert "empty list of brokers" in str(refused(load, "", environ, bootstrap_servers=","))
    assert "no brokers are configured" in str(refused(load, "", {"KOPS_TIMEOUT": "5"}))


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ('username = "alice"', 'usernam = "alice"', "contexts.prod.usernam: there is no such setting", "did you mean username?"),
        ("password_file =", "pasword_file =", "contexts.prod.pasword_file", "did you mean password_file?"),
        ('password_file = "prod.password"', f'password = "{WORD}"', "secrets are not written", "password_file, password_command"),
        ('ca_file = "ca.pem"', "ca_file = 1", "contexts.prod.ca_file must be a path, not 1", ""),
        ("timeout = 20", 'timeout = "20"', "contexts.prod.timeout must be a number of seconds above 0, not the text '20'", ""),
        ("timeout = 20", "timeout = 0", "contexts.prod.timeout must be a number", ""),
        ("protected = true", "protected = 1", "contexts.prod.protected must be true or false, not 1", ""),
        ('"SASL_SSL"', '"SASL_TLS"', "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, not 'SASL_TLS'", "SASL_SSL"),
        ('["prod-1:9093", "prod-2:9093"]', '["prod-1:9093", 2]', "contexts.prod.bootstrap_servers must be a list", ""),
        ('["prod-1:9093", "prod-2:9093"]', "[]", "contexts.prod.bootstrap_servers must be a list", ""),
        ('["prod-1:9093", "prod-2:9093"]', '["prod-1"]', "'prod-1' is not the address of a broker", "prod-1:9092"),
        ('["prod-1:9093", "prod-2:9093"]', '["http://prod:80"]', "is not the address of a broker", ""),
        ('["prod-1:9093", "prod-2:9093"]', '["prod:99999"]', "is not the address of a broker", ""),
        ('"socket.timeout.ms" = 7000', f'"sasl.password" = "{WORD}"', "sasl.password is a secret", "password_file"),
        ('"socket.timeout.ms" = 7000', '"sasl.username" = "x"', "kops has its own setting", "use username"),
        ('"socket.timeout.ms" = 7000', '"socket.timeout.ms" = []', "client.socket.timeout.ms must be a string", ""),
        ("master =", "mastr =", "contexts.prod.spark.mastr: there is no such setting", "did you mean spark.master?"),
        ('username = "alice"', "", "uses SCRAM-SHA-512 and has no username", ""),
        ('password_file = "prod.password"', "", "has no password for alice", "KOPS_PASSWORD"),
        ('sasl_mechanism = "SCRAM-SHA-512"', "", "has no sasl_mechanism", "SCRAM-SHA-512"),
        ('sasl_mechanism = "SCRAM-SHA-512"', 'sasl_mechanism = "OAUTHBEARER"', "does not say where tokens come from", "oauth_token_url"),
        ('security_protocol = "SASL_SSL"', "", "and no security_protocol", "SASL_SSL"),
        ("timeout = 20", 'certificate_file = "c.pem"', "has no key_file", "mTLS"),
        ("timeout = 20", 'password_env = "X"', "password is given twice", "keep one"),
        ("timeout = 20", f'registry_url = "http://me:{WORD}@registry:80"', "holds a user or password", "registry_username"),
        ("timeout = 20", 'connect_urls = "connect:8083"', "'connect:8083' is not an address", "http://"),
        ("[contexts.prod]", "[context.prod]", ": context: there is no such setting", "did you mean contexts?"),
        ("[contexts.prod]", "[contexts.'a b']", "'a b' cannot be the name of a context", "letters"),
        ("[contexts.prod]", "[contexts.prod", "is not TOML", ""),
        ('current = "dev"', "current = 1", "current must be the name", ""),
    ],
)
def test_mistakes_name_the_file_the_key_and_what_was_meant(load, old, new, message, hint):
    assert old in CONFIG
    error = refused(load, CONFIG.replace(old, new, 1), context="prod")
    assert message in error.message
    assert hint in (error.hint or "")
    if "contexts." in message:
        assert str(load.folder / "config.toml") in error.message


def test_a_mistake_in_another_context_does_not_matter(load):
    assert load(CONFIG.replace("timeout = 20", "timeout = false")).name == "dev"


def test_an_unknown_context_names_the_known(load):
    assert "did you mean prod?" in str(refused(load, context="prd").hint)
    assert "known contexts: dev, prod" in str(refused(load, context="zzz").hint)


@pytest.mark.parametrize("name", ["sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem", "sasl.jaas.config"])
def test_secrets_are_refused_as_flags(load, name):
    error = refused(load, properties=[f"{name}={WORD}"])
    assert f"-X: {name} is a secret" in error.message
    assert "KOPS_" in str(error.hint)


def test_a_flag_without_equals_is_not_repeated(load):
    assert "expected key=value" in refused(load, properties=[WORD]).message


def test_properties_that_are_settings_become_settings(load):
    names = ["security.protocol=ssl", "ssl.ca.location=/ca.pem", "ssl.endpoint.identification.algorithm=none", "socket.timeout.ms=1"]
    found = load(properties=names)
    assert (found.security_protocol, found.ca_file, found.verify_hostname) == ("SSL", "/ca.pem", False)
    assert found.client == {"socket.timeout.ms": "1"}
    assert found.sources["ca_file"] == "flag -X ssl.ca.location"
    assert found.sources["client.socket.timeout.ms"] == "flag -X socket.timeout.ms"


def test_every_setting_has_its_variable(load):
    """Text for each kind; the connection then differs from the default in every field."""
    texts = {Kind.LIST: "http://x:1,http://y:2", Kind.FLAG: "yes", Kind.SECONDS: "1.5", Kind.TABLE: "a=1,b=2", Kind.SECRET: WORD}
    special = {
        "KOPS_BOOTSTRAP_SERVERS": "x:1,[::1]:2",
        "KOPS_SECURITY_PROTOCOL": "sasl_ssl",
        "KOPS_SASL_MECHANISM": "plain",
        "KOPS_VERIFY_HOSTNAME": "off",
        "KOPS_REGISTRY_URL": "https://r",
    }
    environ = {one.variable: texts.get(one.kind, "text") for one in SETTINGS.values()} | special
    for left_out in ("KOPS_KEYSTORE_FILE", "KOPS_OAUTH_TOKEN_COMMAND"):  # they contradict others
        del environ[left_out]
    found = load(None, environ)
    default = Connection(())
    assert found.bootstrap_servers == ("x:1", "[::1]:2")
    same = [field.name for field in dataclasses.fields(found) if getattr(found, field.name) == getattr(default, field.name)]
    assert set(same) - {"warnings"} == {"name", "keystore_file"}
    assert found.ca_file == str(Path.cwd() / "text")
    assert found.password is not None
    assert found.password.reveal() == WORD
    assert found.http.registry_password is not None
    assert found.http.registry_password.origin == "environment KOPS_REGISTRY_PASSWORD"
    assert found.spark.conf == {"a": "1", "b": "2"}
    assert WORD not in repr(found) + str(found.sources)


def test_secrets_by_file_and_command_in_the_environment(load):
    assert load(CONFIG, {"KOPS_PASSWORD_COMMAND": "echo other"}, context="prod").password.reveal() == "other"
    (load.folder / "other").write_text("third")
    assert load(CONFIG, {"KOPS_PASSWORD_FILE": str(load.folder / "other")}, context="prod").password.reveal() == "third"
    assert (
        load(CONFIG.replace('password_file = "prod.password"', 'password_env = "MINE"'), {"MINE": "m"}, context="prod").password.reveal()
        == "m"
    )


def test_protection_can_be_raised_and_never_lowered(load):
    assert load(CONFIG, {"KOPS_PROTECTED": "false", "KOPS_READ_ONLY": "1"}, context="prod").protected
    raised = load(CONFIG, {"KOPS_READ_ONLY": "1"})
    assert raised.read_only
    assert raised.sources["read_only"] == "environment KOPS_READ_ONLY"


def test_nothing_secret_is_read_before_a_client_is_made(load):
    (load.folder / "prod.password").unlink()
    assert load(context="prod").password is not None


def test_a_secret_that_everybody_can_read_is_told(load):
    (load.folder / "prod.password").chmod(0o644)
    assert "prod.password can be read by everybody" in " ".join(load(context="prod").warnings)
    assert load(context="dev").warnings == ()


def test_a_file_that_cannot_be_read(load):
    (load.folder / "config.toml").mkdir()
    assert "cannot read" in refused(load, None).message
