"""What is refused before anything is asked of a Spark Connect server."""

import socket

import pytest

from kops.core.errors import Unreachable, UsageProblem
from kops.spark.driver.remote import check_url, connect


def test_an_address_carries_no_token():
    check_url("sc://spark.example:15002/;user_id=me")
    with pytest.raises(UsageProblem, match="carries a token") as refused:
        check_url("sc://spark.example/;use_ssl=true;token=hunter2")
    assert "SPARK_CONNECT_AUTHENTICATE_TOKEN" in str(refused.value.hint)
    assert "hunter2" not in f"{refused.value.message} {refused.value.hint}"


def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unreachable, match="no Spark Connect server answers at"):
        connect(f"sc://127.0.0.1:{port}", {})
