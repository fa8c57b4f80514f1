import stat

from kops.config.durable import write_whole


def test_write_whole_is_private_and_leaves_no_temporary_file(tmp_path):
    file = tmp_path / "new folder" / "password"
    write_whole(file, "secret\n")
    write_whole(file, "other\n")
    assert file.read_text() == "other\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]
