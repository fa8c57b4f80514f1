"""Registries that a program asks from another machine, which lacks the files of certificates that the context names."""

import pickle
import stat
from pathlib import Path

from kops.core.streams.registries import Origin
from kops.gateways.machine.program_registries import Registries, with_contents, with_files
from kops.gateways.registry.read_only import Upstream


def test_certificates_of_registries_go_along(tmp_path):
    texts = {name: f"-----BEGIN {name}-----\n" for name in ("ca", "certificate", "key")}
    files = {name: tmp_path / f"{name}.pem" for name in texts}
    for name, file in files.items():
        file.write_text(texts[name])
    both = {"timeout": 10, "verify": str(files["ca"]), "cert": (str(files["certificate"]), str(files["key"])), "auth": ("me", "secret")}
    requests = [both, {"timeout": 10, "verify": True}, {"verify": True, "cert": str(files["certificate"])}]
    given = Registries(tuple(Upstream(Origin("https", f"registry-{at}", 443), ("",), each) for at, each in enumerate(requests)))
    packed = pickle.dumps(with_contents(given))
    for file in files.values():
        file.unlink()
    there = with_files(pickle.loads(packed), tmp_path / "there")
    first, second, third = (each.request for each in there.upstreams)
    assert {name: first[name] for name in ("timeout", "auth")} == {"timeout": 10, "auth": ("me", "secret")}
    assert [Path(each).read_text() for each in (first["verify"], *first["cert"])] == [*texts.values()]
    assert second == requests[1]
    assert (third["verify"], Path(third["cert"]).read_text()) == (True, texts["certificate"])
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "there").iterdir()} == {0o600}
    assert [each.origin for each in there.upstreams] == [each.origin for each in given.upstreams]
