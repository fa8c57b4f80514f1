"""What ``kops state init`` is given, before anything is connected."""

from pathlib import Path

import pytest

CAPTURE = Path(__file__).parents[2] / "core" / "streams" / "capture.json"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no application is named"),
        (("orders", "--force"), "--force goes with --out"),
        (("--capture", "c.json", "--topology", "t.txt"), "--capture has the topology: leave out --topology"),
        (("orders", "--capture", CAPTURE), "is of many, not of orders"),
        (("--capture", "/no/such"), "cannot read /no/such: No such file"),
    ],
)
def test_usage(run_kops, arguments, said):
    done = run_kops("state", "init", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
