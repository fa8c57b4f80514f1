"""A Maven repository in a folder."""

import tarfile
import zipfile
from pathlib import Path


class Repository:
    """A Maven repository in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(self, organisation: str, name: str, version: str, *needs: tuple[str, str, str]) -> None:
        folder = self.root / organisation.replace(".", "/") / name / version
        folder.mkdir(parents=True)
        coordinates = "<groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        dependencies = "".join(f"<dependency>{coordinates.format(*need)}</dependency>" for need in needs)
        own = coordinates.format(organisation, name, version)
        pom = f"<project><modelVersion>4.0.0</modelVersion>{own}<dependencies>{dependencies}</dependencies></project>"
        (folder / f"{name}-{version}.pom").write_text(pom)
        with zipfile.ZipFile(folder / f"{name}-{version}.jar", "w") as jar:
            jar.writestr("it", name)

    def add_archive(self, organisation: str, name: str, version: str, suffix: str, *files: Path) -> None:
        """Add a ``tar.gz`` beside a jar: ``-plugin.tar.gz`` with the suffix ``plugin``."""
        folder = self.root / organisation.replace(".", "/") / name / version
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(folder / f"{name}-{version}-{suffix}.tar.gz", "w:gz") as archive:
            for file in files:
                archive.add(file, arcname=f"{name}/{file.name}")
