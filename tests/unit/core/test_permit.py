import pytest

from kops.core.permit import ALWAYS, Permit


def test_only_while_it_is_granted():
    permit = Permit()
    with pytest.raises(RuntimeError, match=r"^delete_topics was not sent: "):
        permit.require("delete_topics")
    with permit.granted(), permit.granted():
        permit.require("delete_topics")
    with pytest.raises(RuntimeError), permit.granted():
        raise RuntimeError
    with pytest.raises(RuntimeError, match="no plan is being carried out"):
        permit.require("delete_topics")


def test_gateways_without_a_session_always_have_it():
    ALWAYS.require("delete_topics")
