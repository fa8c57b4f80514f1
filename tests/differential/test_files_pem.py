"""Certificates and keys in PEM are found as Kafka's ``DefaultSslEngineFactory`` finds them, and what OpenSSL is given means the same.

What is not DER between the lines, kops finds too; OpenSSL refuses it when it is loaded.
"""

import base64
import re
import shutil
import ssl
import subprocess

import pytest

from kops.config.java import private_key
from kops.config.pem import CERTIFICATE, PRIVATE_KEY, blocks, for_openssl
from kops.core.errors import ConfigError
from support.java_judge import portions, random_of

COUNTS = (60, pytest.param(2_000, marks=pytest.mark.long))
"""Fewer than of other families: Java makes a whole TLS context for each, and its expression is slow where a block has no end."""
PASSWORD = "key-password"
BETWEEN = ("", "", "\n", "junk\n", "Bag Attributes\n    friendlyName: x\n", "# ü: a\n", "subject=CN = x\n\n", " ", "-\n", "--- x ---\n")
CHANGES = (
    *((r"\n", " "), (r"\n", "\t"), (r"\n", "\r\n"), (r"\n", "\n\n"), (r"\n", "  \n "), (r"\n", "\r"), (r"\n", "\\n"), (r"\n", "\v")),
    *((r"-----", "-"), (r"-----", "----"), (r"-----", "--------"), (r"=+", ""), (r"\n$", ""), (r"(?<=[^-])\n(?=[^-])", "")),
    *((r"BEGIN ", "BEGIN"), (r"(BEGIN|END) ", r"\1 X509 "), (r"(BEGIN|END) ", r"\1  "), (r"(BEGIN|END) ", r"\1\n"), (r"-----\n", "-----")),
    *((r"(BEGIN [A-Z ]+-----\n)", r"\1a: b: c\n\n"), (r"(BEGIN [A-Z ]+-----\n)", r"\1a b\n"), (r"(BEGIN [A-Z ]+-----\n)", r"\1\n\nx:\n")),
    *(
        (r"(CERTIFICATE|KEY)-", r"\1 x-"),
        (r"END [A-Z ]+", "END"),
        (r"END", "BEGIN"),
        (r"PRIVATE KEY", "PRIVATE  KEY"),
        (r"=*\n-----E", "==\n-----E"),
    ),
)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Certificates and keys by name; RSA keys are made by OpenSSL in several forms."""
    if not shutil.which("openssl"):
        pytest.skip("needs the openssl command")
    folder = tmp_path_factory.mktemp("pem")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    for number, key in enumerate((("rsa:2048",), ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), ("rsa:1024",))):
        openssl("req", "-x509", "-newkey", *key, "-nodes", "-subj", f"/CN={number}", "-keyout", f"{number}.key", "-out", f"{number}.pem")
    encrypt = ("pkcs8", "-topk8", "-in", "0.key", "-passout", f"pass:{PASSWORD}")
    openssl(*encrypt, "-v1", "PBE-SHA1-3DES", "-out", "sha1.key")
    openssl(*encrypt, "-out", "pbes2.key")
    openssl("rsa", "-in", "0.key", "-traditional", "-out", "pkcs1.key")
    openssl("rsa", "-in", "0.key", "-traditional", "-aes128", "-passout", f"pass:{PASSWORD}", "-out", "pkcs1-encrypted.key")
    return {file.name: file.read_text() for file in folder.iterdir()}


def changed(random, text):
    for _ in range(random.choice((0, 0, 1, 1, 1, 2))):
        text = re.sub(*random.choice(CHANGES), text)
    return text


def text_of(random, texts):
    chosen = (random.choice(texts) for _ in range(random.choice((1, 1, 1, 2, 3))))
    return "".join(random.choice(BETWEEN) + changed(random, each) for each in chosen) + random.choice(BETWEEN)


@pytest.mark.parametrize("count", COUNTS)
def test_certificates(java_judge, parts, count):
    texts = [text for name, text in parts.items() if name.endswith(".pem")]
    known = {ssl.PEM_cert_to_DER_cert(text) for text in texts}
    read = 0
    for portion in portions(text_of(each, [*texts, *texts, parts["1.key"]]) for each in random_of("pem", count)):
        for text, answer in zip(portion, java_judge.ask("PemTexts", [{"trusted": text} for text in portion]), strict=True):
            try:
                found = [each.der for each in blocks(text, CERTIFICATE, "f")]
            except ConfigError as refused:
                assert "error" in answer, (text, refused.message)
                continue
            if not known.issuperset(found):
                assert "error" in answer, text
                continue
            assert answer.get("ok") == [base64.b64encode(each).decode() for each in found], (text, answer)
            given = for_openssl(text, CERTIFICATE, "f") or text
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(cadata=given)
            assert set(context.get_ca_certs(binary_form=True)) == set(found), text
            read += 1
    assert read > count // 4


@pytest.mark.parametrize("count", COUNTS)
def test_keys(java_judge, parts, tmp_path, count):
    file, read = tmp_path / "key.pem", 0
    keys = [text for name, text in parts.items() if name.endswith(".key")]

    def case(random):
        certain = [parts["0.key"], parts["sha1.key"]]
        text = text_of(random, certain if random.random() < 0.6 else [*keys, parts["0.pem"]])
        encrypted = "ENCRYPTED" in text if random.random() < 0.9 else random.random() < 0.5
        return {"chain": parts["0.pem"], "key": text} | ({"password": PASSWORD} if encrypted else {})

    for portion in portions(case(each) for each in random_of("keys", count)):
        for given, answer in zip(portion, java_judge.ask("PemTexts", portion), strict=True):
            file.write_text(given["key"], encoding="latin-1", newline="")
            try:
                private_key(str(file), has_password="password" in given)
            except ConfigError as refused:
                assert "error" in answer, (given, refused.message)
                continue
            mine = blocks(given["key"], PRIVATE_KEY, "f")
            if not any(each.der == other.der for each in mine for key in keys for other in blocks(key, PRIVATE_KEY, "f")):
                assert "error" in answer, given  # not DER
                continue
            assert "ok" in answer, (given, answer)
            if "password" not in given:
                assert answer["ok"][0] == base64.b64encode(mine[0].der).decode(), given
            read += 1
    assert read > count // 6
