import os
import stat
from pathlib import Path

import pytest
import tomlkit
import yaml

from support.identities import make_identities
from support.patience import HANG_SECONDS

WORD = "geheim-4711"


@pytest.fixture
def config(home):
    return home / "config" / "kops" / "config.toml"


def add(run_kops, name, *arguments):
    return run_kops("context", "add", name, "--bootstrap-servers", f"{name}:9092", "--no-test", *arguments).ok()


def test_without_contexts(run_kops, config):
    found = run_kops("context", "list").ok()
    assert "kops context add" in found.err
    assert run_kops("context", "list", "-o", "json").ok().json == []
    assert run_kops("context", "show").code == 1
    nothing = run_kops("context", "show", "--resolved")
    assert (nothing.code, nothing.out) == (2, "")
    assert nothing.err == (
        "kops: error: no brokers are configured\nhint: kops context add NAME --bootstrap-servers host:9092, or -B host:9092\n"
    )
    assert not config.exists()


def test_add_list_use_remove(run_kops, config):
    first = add(run_kops, "dev")
    assert first.out == ""
    assert "it is the current one" in first.err
    add(run_kops, "prod", "--protected")
    assert run_kops("context", "list", "-o", "json").ok().json == [
        {
            "name": name,
            "current": name == "dev",
            "bootstrap_servers": [f"{name}:9092"],
            "security_protocol": "PLAINTEXT",
            "sasl_mechanism": None,
            "protected": name == "prod",
            "read_only": False,
            "problem": None,
        }
        for name in ("dev", "prod")
    ]
    assert run_kops("context", "list", "-o", "name").ok().out == "dev\nprod\n"
    used = run_kops("context", "use", "prod", "-o", "json").ok()
    assert used.json == {"name": "prod", "current": True}
    assert run_kops("context", "show", "-o", "name").ok().out == "prod\n"

    refused = run_kops("context", "remove", "prod")
    assert (refused.code, refused.out) == (5, "")
    assert "add --yes; nothing was changed" in refused.err
    assert run_kops("context", "remove", "prod", "--yes", "-o", "json").ok().json == {"name": "prod", "removed_files": []}
    assert tomlkit.parse(config.read_text()).unwrap() == {"contexts": {"dev": {"bootstrap_servers": ["dev:9092"]}}}
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    for verb in ("use", "show", "remove"):
        assert run_kops("context", verb, "prod").code == 1


def test_add_takes_every_kind_of_setting(run_kops, config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "password"
    secret.write_text(WORD)
    given = [
        *(
            "context",
            "add",
            "prod",
            "-B",
            "a:9093,b:9093",
            "--timeout",
            "12",
            "-X",
            "socket.timeout.ms=7000",
            "-X",
            "ssl.ca.location=ca.pem",
        ),
        *("--security-protocol", "sasl_ssl", "--sasl-mechanism", "SCRAM-SHA-512", "--username", "alice", "--password-file", "password"),
        *("--no-verify-hostname", "--read-only", "--spark-conf", "a.b=1", "--spark-conf", "c=d=e", "--spark-master", "local[2]"),
        *("--connect-urls", "http://c1:8083,http://c2:8083", "--registry-password-command", "pass registry", "-o", "json", "--no-test"),
    ]
    refused = run_kops(*given)
    assert (refused.code, "ca.pem" in refused.err, "context prod is not saved" in refused.err) == (2, True, True), refused.err
    assert not config.exists()
    make_identities(tmp_path)
    saved = run_kops(*given).ok()
    assert saved.json["current"]
    assert any("can be read by everybody" in note for note in saved.json["notes"])
    assert tomlkit.parse(config.read_text()).unwrap()["contexts"]["prod"] == {
        "bootstrap_servers": ["a:9093", "b:9093"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "username": "alice",
        "password_file": str(secret),
        "ca_file": str(tmp_path / "ca.pem"),
        "verify_hostname": False,
        "connect_urls": ["http://c1:8083", "http://c2:8083"],
        "registry_password_command": "pass registry",
        "read_only": True,
        "timeout": 12.0,
        "client": {"socket.timeout.ms": "7000"},
        "spark": {"master": "local[2]", "conf": {"a.b": "1", "c": "d=e"}},
    }


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-B", "a"], 2, "'a' is not the address of a broker"),
        ([], 2, "context x has no brokers"),
        (["-B", "a:1", "--username", "u"], 2, "and no security_protocol"),
        (["-B", "a:1", "-X", f"sasl.password={WORD}"], 2, "sasl.password is a secret"),
        (["-B", "a:1", "--command-config", "f"], 2, "kops context import"),
        (["-B", "a:1", "--password", WORD], 2, "No such option"),
        (["-B", "a:1", "--security-protocol", "TLS"], 2, "--security-protocol"),
        (["-B", "a:1", "--spark-conf", "x"], 2, "expected key=value"),
    ],
)
def test_add_refuses(run_kops, config, arguments, code, message):
    refused = run_kops("context", "add", "x", *arguments)
    assert (refused.code, refused.out) == (code, "")
    assert message in refused.err
    assert not config.exists()


def test_add_does_not_replace_unless_told(run_kops, config):
    add(run_kops, "dev")
    assert run_kops("context", "add", "dev", "-B", "other:1").code == 5
    assert "dev:9092" in config.read_text()
    run_kops("context", "add", "dev", "-B", "other:1", "--replace", "--no-test").ok()
    assert "dev:9092" not in config.read_text()


def test_show_never_shows_a_secret(run_kops, config, monkeypatch, tmp_path):
    secret = tmp_path / "password"
    secret.write_text(WORD)
    secret.chmod(0o600)
    add(
        run_kops,
        "prod",
        *("--security-protocol", "SASL_SSL", "--sasl-mechanism", "PLAIN", "--username", "alice"),
        "--password-file",
        secret,
    )
    monkeypatch.setenv("KOPS_REGISTRY_PASSWORD", WORD)
    monkeypatch.setenv("KOPS_SPARK_CONF", f"fs.s3a.secret.key={WORD}")
    shown = []
    for form in ("table", "json", "yaml", "csv", "name"):
        for more in ([], ["--resolved"]):
            shown.append(run_kops("context", "show", *more, "-o", form).ok())
    assert not [one for one in shown if WORD in one.out + one.err]
    resolved = run_kops("context", "show", "--resolved", "-X", "client.id=me", "--timeout", "3", "-o", "json").ok().json
    rows = {row["setting"]: (row["value"], row["source"]) for row in resolved["settings"]}
    assert rows == {
        "bootstrap_servers": (["prod:9092"], "context prod"),
        "security_protocol": ("SASL_SSL", "context prod"),
        "sasl_mechanism": ("PLAIN", "context prod"),
        "username": ("alice", "context prod"),
        "password": (f"(set, from file {secret})", "context prod"),
        "verify_hostname": (True, "default"),
        "registry_password": ("(set, from environment KOPS_REGISTRY_PASSWORD)", "environment KOPS_REGISTRY_PASSWORD"),
        "spark.conf.fs.s3a.secret.key": ("(set)", "environment KOPS_SPARK_CONF"),
        "client.client.id": ("me", "flag -X client.id"),
        "protected": (False, "default"),
        "read_only": (False, "default"),
        "timeout": (3.0, "flag --timeout"),
    }
    assert yaml.safe_load(run_kops("context", "show", "-o", "yaml").ok().out)["name"] == "prod"
    assert run_kops("context", "show", "-o", "csv").ok().out.startswith("setting,value\nbootstrap_servers,")


def test_show_hides_the_keys_of_object_stores_and_warns_of_who_can_read_them(run_kops, config):
    keys = (
        "spark.hadoop.fs.azure.account.key.shop.blob.core.windows.net",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
        "spark.hadoop.fs.s3a.access.key",
    )
    for key in (*keys, "spark.driver.extraJavaOptions"):
        value = f"-Djavax.net.ssl.keyStorePassword={WORD}" if key.startswith("spark.driver") else WORD
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f'[contexts.prod]\nbootstrap_servers = ["b:1"]\n[contexts.prod.spark.conf]\n"{key}" = "{value}"\n')
        config.chmod(0o644)
        for more in ([], ["--resolved"]):
            shown = run_kops("context", "show", "prod", *more, "-o", "json").ok()
            assert key in shown.out
            assert WORD not in shown.out + shown.err
        assert "can be read by everybody on this machine" in run_kops("topics", "list", "-c", "prod", "--timeout", "0.2").err
        config.chmod(0o600)
        assert "can be read" not in run_kops("topics", "list", "-c", "prod", "--timeout", "0.2").err


def test_show_by_name_and_by_flag(run_kops, config):
    add(run_kops, "dev")
    add(run_kops, "prod")
    for arguments in (["prod"], ["-c", "prod"]):
        for more in ([], ["--resolved"]):
            assert run_kops("context", "show", *arguments, *more, "-o", "json").ok().json["name"] == "prod"
    assert run_kops("context", "show", "prod", "-c", "dev").code == 2


def test_a_mistake_in_the_file_spoils_one_context_only(run_kops, config):
    add(run_kops, "dev")
    config.write_text(config.read_text() + '\n[contexts.bad]\nbootstrap_server = "x:1"\nprotected = true\n')
    dev, bad = run_kops("context", "list", "-o", "json").ok().json
    assert dev["problem"] is None
    assert bad["problem"] == "contexts.bad.bootstrap_server: there is no such setting"
    assert bad["protected"]
    assert "PROBLEM" in run_kops("context", "list").ok().out
    wrong = run_kops("context", "show", "--resolved", "-c", "bad")
    assert wrong.code == 2
    assert "hint: did you mean bootstrap_servers?" in wrong.err


def test_import_keeps_the_password_in_a_file_of_its_own(run_kops, config, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=a:9093\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nlinger.ms=5\n"
        f'sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="{WORD}";\n'
    )
    file.chmod(0o600)
    saved = run_kops("context", "import", file, "--name", "prod", "--no-test", "-o", "json").ok()
    table = tomlkit.parse(config.read_text()).unwrap()["contexts"]["prod"]
    password_file = Path(table.pop("password_file"))
    assert table == {
        "bootstrap_servers": ["a:9093"],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "username": "alice",
    }
    assert password_file.read_text() == WORD + "\n"
    assert stat.S_IMODE(password_file.stat().st_mode) == 0o600
    assert saved.json["notes"] == ["linger.ms is not used by kops", f"the password is kept in {password_file}"]
    assert WORD not in saved.out + saved.err + config.read_text()
    again = run_kops("context", "import", file, "--name", "prod")
    assert again.code == 5
    removed = run_kops("context", "remove", "prod", "-y", "-o", "json").ok()
    assert removed.json["removed_files"] == [str(password_file)]
    assert not password_file.exists()


def test_import_without_brokers_asks_for_them(run_kops, config, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=PLAINTEXT\n")
    missing = run_kops("context", "import", file, "--name", "prod")
    assert missing.code == 2
    assert "hint: add --bootstrap-servers" in missing.err
    run_kops("context", "import", file, "--name", "prod", "--bootstrap-servers", "a:1, b:2", "--no-test").ok()
    assert tomlkit.parse(config.read_text()).unwrap()["contexts"]["prod"]["bootstrap_servers"] == ["a:1", "b:2"]


@pytest.mark.broker
def test_import_saves_what_works(run_kops, config, tmp_path, broker):
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
    run_kops("context", "import", file, "--name", "here").ok()
    run_kops("context", "test", "here").ok()


def test_import_does_not_save_what_does_not_work(run_kops, config, tmp_path, free_port):
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers=127.0.0.1:{free_port}\nrequest.timeout.ms=5000\n")
    silent = run_kops("context", "import", file, "--name", "prod")
    assert silent.code == 3
    assert f"no broker answers at 127.0.0.1:{free_port}" in silent.err
    assert "context prod is not saved" in silent.err
    assert "--no-test" in silent.err
    file.write_text("bootstrap.servers=a:1\nsecurity.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates=nothing\n")
    broken = run_kops("context", "import", file, "--name", "prod", "--no-test")
    assert broken.code == 2
    assert "ssl.ca.pem holds no certificate" in broken.err
    empty = "-----BEGIN CERTIFICATE----- AAAA -----END CERTIFICATE-----"
    file.write_text(f"bootstrap.servers=a:1\nsecurity.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates={empty}\n")
    broken = run_kops("context", "import", file, "--name", "prod", "--no-test")
    assert broken.code == 2
    assert "the TLS files of this context cannot be used" in broken.err
    assert not config.exists()


def test_names_are_completed(run_kops, config, monkeypatch, kops_process):
    add(run_kops, "prod")
    add(run_kops, "dev")
    environment = os.environ | {"_KOPS_COMPLETE": "bash_complete", "COMP_WORDS": "kops context use p", "COMP_CWORD": "3"}
    out, _ = kops_process(env=environment).communicate(timeout=HANG_SECONDS)
    assert out.split() == ["plain,prod"]


@pytest.mark.broker
def test_test(run_kops, broker):
    run_kops("context", "add", "here", "-B", broker.bootstrap_servers).ok()
    body = run_kops("context", "test", "-o", "json").ok().json
    assert body["name"] == "here"
    assert body["cluster_id"]
    assert body["authenticated_as"] == "anonymous"
    assert {broker["address"] for broker in body["brokers"]} >= set(broker.bootstrap_servers.split(",")[:1])
    assert run_kops("context", "test", "here", "-o", "name").ok().out.strip() == body["cluster_id"]
    assert body["cluster_id"] in run_kops("context", "test").ok().out


def test_test_when_nobody_answers(run_kops, free_port):
    run_kops("context", "add", "gone", "-B", f"127.0.0.1:{free_port}", "--timeout", "5", "--no-test").ok()
    found = run_kops("context", "test")
    assert (found.code, found.out) == (3, "")
    assert f"no broker answers at 127.0.0.1:{free_port}: nothing listens at 127.0.0.1:{free_port}" in found.err


@pytest.mark.broker
def test_add_saves_what_works(run_kops, config, broker, free_port):
    refused = run_kops("context", "add", "gone", "-B", f"127.0.0.1:{free_port}", "--timeout", "5")
    assert (refused.code, refused.out, config.exists()) == (3, "", False)
    assert "context gone is not saved" in refused.err
    assert "save it without connecting: --no-test" in refused.err
    tls = run_kops("context", "add", "tls", "-B", broker.bootstrap_servers, "--security-protocol", "SSL", "--timeout", "8")
    assert (tls.code, "context tls is not saved" in tls.err, config.exists()) == (3, True, False)
    run_kops("context", "add", "here", "-B", broker.bootstrap_servers).ok()


@pytest.mark.broker
def test_test_when_the_broker_does_not_speak_tls(run_kops, broker):
    found = run_kops("context", "test", "-B", broker.bootstrap_servers, "-X", "security.protocol=SSL", "--timeout", "8")
    assert (found.code, found.out) == (3, "")
    assert "without TLS it is PLAINTEXT" in found.err


@pytest.fixture
def free_port():
    """A port on which nobody listens: bound, and never listening."""
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
