"""The wrong protocol on a port: named, and not an address at which no broker answers."""

import pytest

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("command", ["topics list", "cluster brokers", "groups lag billing", "records consume orders"])
def test_a_plain_client_on_a_port_that_speaks_tls(own_secured, run_kops, command):
    found = run_kops(*command.split(), "-B", own_secured.bootstrap_servers, "--timeout", "20")
    assert found.code == 3
    assert "speaks TLS" in found.err
    assert "security_protocol" in found.err


@pytest.fixture(scope="module")
def own_secured(own_brokers):
    return own_brokers(security="sasl-ssl")


def test_a_tls_client_on_a_port_that_does_not_speak_it(broker, run_kops):
    found = run_kops("topics", "list", "-B", broker.bootstrap_servers, "-X", "security.protocol=ssl", "--timeout", "20")
    assert found.code == 3
    assert "does not speak TLS" in found.err
