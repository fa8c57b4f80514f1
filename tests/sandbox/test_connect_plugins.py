"""Connect plugins by Maven coordinate, from a repository in a folder: archives unpacked, jars with what they need."""

import pytest

from support.maven import Repository

pytestmark = pytest.mark.usefixtures("jdk")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    made = Repository(tmp_path / "maven")
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", made.root.as_uri() + "/")
    monkeypatch.setenv("KOPS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("KOPS_JARS_DIR", raising=False)
    return made


def names(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_plugin_archive_is_unpacked_once(run_kops, repository, tmp_path, monkeypatch):
    (tmp_path / "some.jar").write_text("jar")
    repository.add_archive("org.example", "packed", "1.0", "plugin", tmp_path / "some.jar")
    (row,) = run_kops("connect", "plugins", "add", "org.example:packed:1.0", "-o", "json").ok().json
    folder = tmp_path / "cache" / "jars" / "connect-plugins" / "packed-1.0"
    assert row == {"plugin": "org.example:packed:1.0", "directory": str(folder), "jars": 1}
    assert names(folder) == ["packed/some.jar"]
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", "http://127.0.0.1:1/")
    run_kops("connect", "plugins", "add", "org.example:packed:1.0").ok()  # it is there
    assert [each.name for each in folder.parent.iterdir()] == ["packed-1.0"]


def test_plugin_jar_is_fetched_without_jars_of_workers(run_kops, repository, tmp_path):
    needs = [("org.example", "shared", "2.0"), ("org.slf4j", "slf4j-api", "9.9"), ("org.apache.kafka", "connect-api", "4.3.1")]
    for need in needs:
        repository.add(*need)
    repository.add("org.example", "plain", "1.0", *needs)
    run_kops("connect", "plugins", "add", "org.example:plain:1.0").ok()
    assert names(tmp_path / "cache" / "jars" / "connect-plugins" / "plain-1.0") == ["plain-1.0.jar", "shared-2.0.jar"]


def test_missing_plugin_leaves_nothing_behind(run_kops, repository, tmp_path):
    missing = run_kops("connect", "plugins", "add", "org.example:nothing:1.0")
    assert (missing.code, "org.example:nothing:1.0" in missing.err, "check the coordinate" in missing.err) == (2, True, True)
    assert list((tmp_path / "cache" / "jars" / "connect-plugins").iterdir()) == []
    assert run_kops("connect", "plugins", "add", "nothing:1.0").code == 2
