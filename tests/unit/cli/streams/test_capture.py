"""What ``kops streams capture`` is given, before anything is started."""

import pytest

from support.stand_in_jars import stand_in


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing option '--out'"),
        (("--out", "c.json"), "name what to start"),
        (("--out", "c.json", "--jar", "a.jar", "--", "java"), "name what to start"),
        (("--out", "c.json", "--jar", "a.jar", "--jar", "b.jar"), "name what to start"),
        (("--out", "c.json", "--topology-class", "a.B::c", "--", "java"), "name a COMMAND or --topology-class, not both"),
        (("--out", "c.json", "--properties", "p", "--", "java"), "--class-path and --properties go with --topology-class"),
        (("--out", "c.json", "--topology-class", "a.B::c"), "the settings have no application.id"),
        (("--out", "c.json", "--topology-class", "a.B::c", "--properties", "/no/such"), "cannot read /no/such: No such file"),
        (("--out", "c.json", "--within", "soon", "--", "java"), "'soon' is not a valid duration"),
    ],
)
def test_usage(run_kops, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    done = run_kops("streams", "capture", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not (tmp_path / "c.json").exists()


def test_a_time_out_has_its_own_exit_code(run_kops, tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch)
    done = run_kops("streams", "capture", "--out", tmp_path / "c.json", "--within", "200ms", "--", "sleep", "600")
    assert (done.code, done.out) == (4, "")
    assert "sleep 600 was ended after 200ms: it started no JVM that took the agent; it printed nothing" in done.err
