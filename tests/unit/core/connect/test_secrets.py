"""Secrets of connectors: which settings they are, and that nothing of them shows."""

import base64
import json
import threading
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kops.core.connect.secrets import digest, masked, scrubbed, secret_texts
from kops.core.secret_shapes import HIDDEN, is_secret_name, without_secrets
from kops.operations.connect.redaction import RedactedConfig, digest_key, redact

KEY = b"k" * 32
SECRETS = """
consumer.override.ssl.keystore.key source.cluster.ssl.keystore.key target.cluster.ssl.keystore.key ssl.keystore.key
admin.override.ssl.key.password ssl.key.pem sasl.password ssl.keystore.password sasl.jaas.config SASL.PASSWORD
sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.assertion.private.key.passphrase fs.s3a.secret.key
fs.s3a.access.key spark.hadoop.fs.s3a.access.key basic.auth.user.info spark.hadoop.fs.azure.account.key.shop.blob.core.windows.net
spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net fs.gs.auth.service.account.private.key db.pass db.pwd redis.pw dbPass
x.token y.secret x.token.1 auth.token bearer.token connect.mqtt.password http.header.authorization azure.sas.token vault.secret.id.value
gcs.credentials.json github.oauth.token snowflake.private.key snowflake.private.key.passphrase spark.ssl.keyPassword
spark.authenticate.secret pin hsm.pin card_pin userPin
"""
ORDINARY = """
key.converter value.converter token.bucket.size token.bucket.capacity token.refresh.interval delegation.token.expiry
basic.auth.credentials.source fs.s3a.aws.credentials.provider sasl.username ssl.ca.location ssl.ca.pem ssl.certificate.pem
ssl.keystore.location ssl.keystore.type ssl.keystore.certificate.chain ssl.truststore.certificates client.id tasks.max key.ignore
pk.fields message.key.columns partition.key primary.key tokenizer tokenizer.class pass.through.fields bypass passthrough compass
errors.tolerance secret.name secret.version private.key.id access.key.id sasl.mechanism oauth.token.url password.encoder.algorithm
keystore.path transforms.key.type pinned spinner pin.length pin.timeout.ms shipping
"""


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("connection.password", True),
        ("database.password", True),
        ("producer.override.sasl.jaas.config", True),
        ("value.converter.basic.auth.user.info", True),
        ("aws.secret.access.key", True),
        ("ssl.key.password", True),
        ("api_key", True),
        ("azblob.account.key", True),
        ("key.converter", False),
        ("connection.user", False),
        ("database.password.file", False),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("topics", False),
        *((name, True) for name in SECRETS.split()),
        *((name, False) for name in ORDINARY.split()),
    ],
)
def test_names(name, secret):
    assert is_secret_name(name) is secret


def test_what_is_shown():
    config = {
        "connection.password": "hunter2",
        "ssl.key.password": "${file:/run/secrets:key}",
        "pin": "1234",
        "connection.url": "jdbc:postgresql://me:hunter2@db/shop?password=hunter2&ssl=true",
        "other.url": "http://me:${env:PW}@db",
        "topics": "orders",
    }
    shown = masked(config, {"pin"})
    assert shown == {
        "connection.password": HIDDEN,
        "ssl.key.password": "${file:/run/secrets:key}",
        "pin": HIDDEN,
        "connection.url": f"jdbc:postgresql://me:{HIDDEN}@db/shop?password={HIDDEN}&ssl=true",
        "other.url": "http://me:${env:PW}@db",
        "topics": "orders",
    }
    assert secret_texts(config, {"pin"}) == {"hunter2", "1234"}
    assert scrubbed("it is hunter2, and //a:b@c", {"hunter2"}) == f"it is {HIDDEN}, and //a:b@c"
    assert scrubbed("jdbc:x://u:pw@h", ()) == f"jdbc:x://u:{HIDDEN}@h"


def test_sealed_config_opens_only_with_same_secrets():
    config = {"name": "c", "connection.password": "hunter2", "url": "x://u:pw@h", "topics": "t"}
    sealed = RedactedConfig(**asdict(redact(config, (), KEY)))
    assert "hunter2" not in str(sealed)
    assert "u:pw" not in str(sealed)
    assert sealed.opened([{"connection.password": "other"}, config], KEY) == ({key: config[key] for key in config if key != "name"}, [])
    assert sealed.opened([{"connection.password": "other"}], KEY)[1] == ["connection.password", "url"]
    assert digest("a", KEY) != digest("a", b"x" * 32)


PEM = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nAB12cdEF34gh==\n-----END ENCRYPTED PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("jdbc:oracle:thin:scott/tiger9@//db:1521/shop", "jdbc:oracle:thin:scott/*@//db:1521/shop"),
        ("jdbc:oracle:thin:scott/ti/g@er@db:1521:orcl", "jdbc:oracle:thin:scott/*@db:1521:orcl"),
        ('jdbc:oracle:oci8:scott/"a b@c"@shop', "jdbc:oracle:oci8:scott/*@shop"),
        ("jdbc:oracle:thin:@//db:1521/shop", "jdbc:oracle:thin:@//db:1521/shop"),
        ("jdbc:sqlserver://db:1433;user=me;password={a;b}c;encrypt=true", None),
        ("jdbc:sqlserver://db:1433;user=me;pwd=hunter2;encrypt=true", "jdbc:sqlserver://db:1433;user=me;pwd=*;encrypt=true"),
        ("jdbc:db2://db:50000/shop:user=me;password=hunter2;", "jdbc:db2://db:50000/shop:user=me;password=*;"),
        ("jdbc:mysql://db/shop?user=me&password=hunter2&useSSL=true", "jdbc:mysql://db/shop?user=me&password=*&useSSL=true"),
        ("jdbc:postgresql://db/shop?sslpassword=hunter2", "jdbc:postgresql://db/shop?sslpassword=*"),
        ("https://me:hun/t:e@r2@db:8443/a", "https://me:*@db:8443/a"),
        ("http://a:1x@h1:80,http://b:2x@h2:80", "http://a:*@h1:80,http://b:*@h2:80"),
        ("https://me:hun://ter2@db:8443/a", "https://me:*@db:8443/a"),
        ("jdbc:mysql://h:3306/db?proxy=http://u:hunter2@p", "jdbc:mysql://h:3306/db?proxy=http://u:*@p"),
        ("redis://:hunter2@cache:6379", "redis://:*@cache:6379"),
        ("mongodb+srv://me:hunter2@db/shop?w=1", "mongodb+srv://me:*@db/shop?w=1"),
        ("Endpoint=sb://x.net/;SharedAccessKeyName=root;SharedAccessKey=abc+/=", "Endpoint=sb://x.net/;SharedAccessKeyName=root;SharedAccessKey=*"),
        ("AccountName=shop;AccountKey=abc+/==;EndpointSuffix=core", "AccountName=shop;AccountKey=*;EndpointSuffix=core"),
        ("https://x.blob.net/c?sv=2020&sp=r&sig=aB%2Fc%3D", "https://x.blob.net/c?sv=2020&sp=r&sig=*"),
        ("Authorization: Bearer eyJhbGciOi.J9.x-y_z", "Authorization: Bearer *"),
        ("Authorization:Basic dXNlcjpwdw==|Accept: json", "Authorization:Basic *|Accept: json"),
        ("X-Api-Key: 12ab", "X-Api-Key: *"),
        ("it got bearer abc.def-123 and stopped", "it got bearer * and stopped"),
        ('{"user": "me", "password": "hun\\"ter2"}', '{"user": "me", "password": *}'),
        (f"ssl.keystore.key={PEM}\nnext", "ssl.keystore.key=*\nnext"),
        (PEM[:60], "*"),
        ("Basic dXNlcjpwdw==", "Basic *"),
        ("basic auth, basic settings, Basic MTIzNDU2Nzg=", "basic auth, basic settings, Basic MTIzNDU2Nzg="),
        ("https://hooks.slack.com/services/T0AB1CD2E/B0AB1CD2F/aBcDeF1234567890gHiJkLmN", "https://hooks.slack.com/services/*/*/*"),
        ("https://discord.com/api/webhooks/112233445566778899/a_B-c1D2e3F4g5H6", "https://discord.com/api/webhooks/*/*"),
        ("https://shop.webhook.office.com/webhookb2/1f2e3d4c-aaaa-bbbb@9f8e/IncomingWebhook/0a1b2c3d4e5f/77aa-88b9",
         "https://shop.webhook.office.com/*/*/IncomingWebhook/*/*"),
        ("https://api.telegram.org/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/sendMessage", "https://api.telegram.org/*/sendMessage"),
        ("https://chat.googleapis.com/v1/spaces/S1/messages?key=AIzaSyD1e2f3G4h5I6j7K8l9&threadKey=a",
         "https://chat.googleapis.com/v1/spaces/S1/messages?key=*&threadKey=a"),
        ("INSERT INTO a SELECT c FROM b PROPERTIES('db.password'='hunter2')", "INSERT INTO a SELECT c FROM b PROPERTIES('db.password'=*)"),
        ("INSERT INTO a SELECT c FROM b WITH PASSWORD 'hunter2' BATCH = 5", "INSERT INTO a SELECT c FROM b WITH PASSWORD * BATCH = 5"),
        ("CREATE USER a IDENTIFIED BY `hunter2`", "CREATE USER a IDENTIFIED BY *"),
        ('{"encryptionKey":"hunter2","pin": 1234,"id":"a"}', '{"encryptionKey":*,"pin": *,"id":"a"}'),
        ('{"kty":"RSA","n":"0vx7","e":"AQAB","d":"X4cTteJY","p":"83i-7"}', '{"kty":"RSA","n":"0vx7","e":"AQAB","d":*,"p":*}'),
        ('{"d":"day","p":"q"}', '{"d":"day","p":"q"}'),
        (f"key: {base64.b64encode(PEM.encode()).decode()} and", "key: * and"),
        (base64.b64encode(b"-----BEGIN CERTIFICATE-----" * 4).decode(), base64.b64encode(b"-----BEGIN CERTIFICATE-----" * 4).decode()),
        *((text, text) for text in (
            "https://webhooks.shop.internal/api/orders", "https://s3.eu-central-1.amazonaws.com/bucket/2026/11/27/part-00000.avro",
            "https://registry:8081/subjects/orders-value/versions/latest", "https://docs/0b8f6a52-1111-2222-3333-444455556666/x",
            "https://db:8443/a", "http://me@host/x", "basic authentication failed", "a bearer token is missing",
            "password: Missing required",
            "connect.token.bucket.size must be positive", "no key= value", "org.apache.kafka.connect.json.JsonConverter",
            "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----", "compass=north", "jdbc:postgresql://db:5432/shop?ssl=true")),
    ],
)  # fmt: skip
def test_shapes(text, shown):
    if shown is None:
        assert "a;b" not in without_secrets(text)
        return
    assert without_secrets(text) == shown.replace("*", HIDDEN)


def test_a_key_in_json_is_hidden_where_a_stack_trace_has_it_unescaped():
    body = json.dumps({"type": "service_account", "private_key": "MIIE\nvQIBADANBgkqhkiG9w0BAQ\n"})
    config = {"credentials": body}
    assert "vQIBADANBgkqhkiG9w0BAQ" not in masked(config)["credentials"]
    assert "vQIBADANBgkqhkiG9w0BAQ" not in scrubbed("cannot parse vQIBADANBgkqhkiG9w0BAQ at 3", secret_texts(config))


secret_word = st.text("abcdefgXYZ0123456789+/_-.~!$%^:@", min_size=8, max_size=30).map("s3cr".__add__)


@given(secret_word)
@example("s3cr00000://")
@example("s3cr-a://b@c://d")
def test_secrets_of_any_shape_are_hidden(secret):
    url = secret.replace("@", "")
    word = "".join(letter for letter in secret if letter.isalnum()) + "aB3dE6gH9"
    config = {
        "name": "c",
        "consumer.override.ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----\n{secret}{secret}\n-----END PRIVATE KEY-----",
        "source.cluster.sasl.jaas.config": f'x.PlainLoginModule required username="u" password="{secret}";',
        "inline.pem": f"-----BEGIN EC PRIVATE KEY----- {secret} -----END EC PRIVATE KEY-----",
        "db.pass": secret,
        "db.pwd": secret,
        "a.secret.1": secret,
        "a.token.1": secret,
        "connection.url": f"jdbc:oracle:thin:scott/{secret}@db:1521:shop",
        "other.url": f"https://me:{secret}@db:443/x?y=1",
        "sql.url": f"jdbc:sqlserver://db;user=me;pwd={url}",
        "blob": f"AccountName=a;AccountKey={url};x=1",
        "bus": f"Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey={url}",
        "sas": f"https://x/c?sv=1&sig={url}",
        "http.headers": f"Authorization: Bearer {url}",
        "http.auth.header": f"Basic {base64.b64encode(f'me:{secret}'.encode()).decode()}",
        "alerts.to": f"https://hooks.slack.com/services/T0AB1CD2E/{word}",
        "connect.kcql": f"INSERT INTO a SELECT c FROM b WITH PASSWORD '{secret}' PROPERTIES('db.password'='{secret}')",
        "credentials": json.dumps({"id": "a", "pin": secret, "nested": [{"clientSecret": secret}]}),
        "jwk": json.dumps({"kty": "oct", "k": secret}),
        "topics": "orders",
    }
    shown = masked(config)
    assert (shown["topics"], shown["name"]) == ("orders", "c")
    assert secret not in json.dumps(shown)
    assert url not in json.dumps(shown)
    assert not {word, config["http.auth.header"]} & {*shown.values(), shown["alerts.to"].rsplit("/", 1)[-1]}
    trace = "\n".join(f"failed at {name} = {value}: {value!r}" for name, value in config.items())
    cleaned = scrubbed(trace, secret_texts(config))
    assert secret not in cleaned
    assert url not in cleaned
    sealed = redact(config, (), KEY)
    assert secret not in json.dumps(asdict(sealed))
    assert url not in json.dumps(asdict(sealed))
    assert sealed.opened([config], KEY) == ({key: value for key, value in config.items() if key != "name"}, [])


def services(folder):
    return SimpleNamespace(directories=SimpleNamespace(state=folder))


def test_digest_key_is_complete_and_private(tmp_path):
    keys = []
    threads = [threading.Thread(target=lambda: keys.append(digest_key(services(tmp_path / "s")))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file = tmp_path / "s" / "connect-digests.key"
    assert len(set(keys)) == 1
    assert len(keys) == 8
    assert len(keys[0]) == 32
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    assert file.stat().st_mode & 0o777 == 0o600


def test_truncated_digest_key_is_replaced(tmp_path):
    file = tmp_path / "connect-digests.key"
    file.write_bytes(b"")
    assert len(digest_key(services(tmp_path))) == 32
    assert digest_key(services(tmp_path)) == file.read_bytes()
