from dataclasses import replace

import pytest

from kops.config.connection import Connection, Http
from kops.config.http import http_settings, path_segment
from kops.config.secrets import from_value
from kops.core.errors import ConfigError, UsageProblem


def connection(**http):
    return Connection(("a:1",), http=Http(**http), timeout=7.0)


def test_plain():
    assert http_settings(connection(), "connect") == {"timeout": 7.0, "verify": True}


def test_each_service_has_its_own_login():
    both = connection(
        connect_username="c", connect_password=from_value("t", "1"), registry_username="r", registry_password=from_value("t", "2")
    )
    assert http_settings(both, "connect")["auth"] == ("c", "1")
    assert http_settings(both, "registry")["auth"] == ("r", "2")
    assert "auth" not in http_settings(replace(both, http=replace(both.http, connect_username=None)), "connect")


def test_tls(certificates):
    settings = http_settings(
        connection(ca_file=certificates.ca_pem, certificate_file=certificates.client_pem, key_file=certificates.client_key), "connect"
    )
    assert settings["verify"] == certificates.ca_pem
    assert settings["cert"] == (certificates.client_pem, certificates.client_key)
    one = http_settings(connection(certificate_file=certificates.both_pem), "connect")
    assert one["cert"] == certificates.both_pem


def test_encrypted_key_is_refused_before_openssl_asks_for_a_passphrase(certificates):
    with pytest.raises(ConfigError, match="encrypted"):
        http_settings(connection(certificate_file=certificates.client_pem, key_file=certificates.encrypted_key), "connect")


def test_missing_file_and_missing_password():
    with pytest.raises(ConfigError, match=r"/nowhere/ca.pem \(http_ca_file\)"):
        http_settings(connection(ca_file="/nowhere/ca.pem"), "registry")
    with pytest.raises(ConfigError, match="registry_username is set and no registry_password"):
        http_settings(connection(registry_username="r"), "registry")


@pytest.mark.parametrize("name", ["a", "a/b", "a%2Fb", "...", "é?#;", " "])
def test_a_segment_arrives_as_the_name_it_was_made_of(name):
    from urllib.parse import unquote, urlsplit

    from requests import Request

    segment = path_segment(name, "subject")
    path = urlsplit(Request("GET", f"http://a/subjects/{segment}/versions").prepare().url).path
    assert [unquote(part) for part in path.split("/")] == ["", "subjects", name, "versions"]


@pytest.mark.parametrize("name", ["", ".", "..", "a\ud83d"])
def test_names_that_no_address_holds_are_refused(name):
    with pytest.raises(UsageProblem, match="no request reaches a subject"):
        path_segment(name, "subject")
