"""Archives are unpacked into their folder and nowhere else, by any Python."""

import io
import tarfile

import pytest

from kops.core.errors import MissingRequirement
from kops.gateways.machine.archives import unpack


@pytest.fixture(params=["with a filter", "without"])
def any_python(request, monkeypatch):
    """A Python of today, and one before 3.10.12 or 3.11.4."""
    if request.param == "without":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


def packed(path, *names, kind=tarfile.REGTYPE):
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, 3 if kind == tarfile.REGTYPE else 0
            member.linkname = "/etc/passwd"
            archive.addfile(member, io.BytesIO(b"abc"))
    return path


@pytest.mark.usefixtures("any_python")
def test_archive_is_unpacked(tmp_path):
    found = unpack(packed(tmp_path / "a.tar.gz", "one/two.txt"), tmp_path / "out")
    assert (found / "one" / "two.txt").read_text() == "abc"


@pytest.mark.usefixtures("any_python")
@pytest.mark.parametrize(("name", "kind"), [("../away.txt", tarfile.REGTYPE), ("link", tarfile.SYMTYPE)])
def test_archive_cannot_escape_directory(tmp_path, name, kind):
    with pytest.raises((MissingRequirement, tarfile.TarError)):
        unpack(packed(tmp_path / "a.tar.gz", name, kind=kind), tmp_path / "out")
    assert not (tmp_path / "away.txt").exists()
