"""What ``kops state init`` is given, before anything is connected."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing argument 'APPLICATION'"),
        (("orders", "--force"), "--force goes with --out"),
    ],
)
def test_usage(run_kops, arguments, said):
    done = run_kops("state", "init", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
