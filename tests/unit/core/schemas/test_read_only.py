"""What a program may ask a registry."""

import pytest

from kops.core.schemas.read_only import RequestVerdict, judge_request

PASSES, REFUSED = RequestVerdict(passes=True), RequestVerdict(passes=False)


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/schemas/ids/7"),
        ("GET", "/subjects/a-value/versions/latest?deleted=false"),
        ("HEAD", "/subjects"),
        ("POST", "/subjects/a-value"),
        ("POST", "/subjects/:.context:a-value?normalize=true&deleted=true"),
        ("POST", "/subjects/a%20b"),
        ("POST", "/compatibility/subjects/a-value/versions/latest"),
        ("POST", "/compatibility/subjects/a-value/versions?verbose=true"),
    ],
)
def test_what_reads_passes(method, target):
    assert judge_request(method, target) == PASSES


@pytest.mark.parametrize(
    ("target", "look_up", "subject"),
    [
        ("/subjects/a-value/versions", "/subjects/a-value", "a-value"),
        ("/subjects/a-value/versions/", "/subjects/a-value", "a-value"),
        ("/subjects/a%20b/versions?normalize=true", "/subjects/a%20b?normalize=true", "a b"),
        ("/subjects/versions/versions", "/subjects/versions", "versions"),
    ],
)
def test_what_registers_becomes_a_look_up(target, look_up, subject):
    assert judge_request("POST", target) == RequestVerdict(passes=False, look_up=look_up, subject=subject)


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("PUT", "/config/a-value"),
        ("PUT", "/mode"),
        ("DELETE", "/subjects/a-value"),
        ("PATCH", "/subjects/a-value"),
        ("post", "/subjects/a-value"),
        ("POST", "/subjects"),
        ("POST", "/subjects/a-value/versions/1"),
        ("POST", "/subjects/a-value%2Fversions"),
        ("POST", "/subjects/a-value%252Fversions"),
        ("POST", "/subjects/a-value;x/versions"),
        ("POST", "/subjects/a-value%3Bx"),
        ("POST", "/subjects/.."),
        ("POST", "/subjects/%2e%2e/versions"),
        ("POST", "/subjects/a%0d%0ab"),
        ("POST", "/subjects//versions"),
        ("POST", "//subjects/a-value"),
        ("POST", "/other/subjects/a-value"),
        ("POST", "http://elsewhere/subjects/a-value"),
        ("GET", "http://elsewhere/subjects"),
    ],
)
def test_what_may_change_something_is_refused(method, target):
    assert judge_request(method, target) == REFUSED


def test_the_api_may_be_below_a_path():
    bases = ("/apis/ccompat/v7", "/registry")
    assert judge_request("POST", "/registry/subjects/a", bases) == PASSES
    found = judge_request("POST", "/apis/ccompat/v7/subjects/a/versions?x", bases)
    assert found == RequestVerdict(passes=False, look_up="/apis/ccompat/v7/subjects/a?x", subject="a")
    assert judge_request("POST", "/subjects/a", bases) == REFUSED
    assert judge_request("POST", "/registry2/subjects/a", bases) == REFUSED
