"""The jars that a Maven artifact needs to run, from the POMs of a repository, as Maven 3 chooses them.

Rules: Maven's "Introduction to the Dependency Mechanism" and "POM Reference". Of two versions the nearest is taken, and at the same depth
the first; parents, properties, managed versions, imported BOMs, exclusions and relocations count. A range of versions is refused.
Profiles are ignored, and a relocated artifact counts as a dependency of its old name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from xml.etree import ElementTree

from kops.core.errors import MissingRequirement
from kops.gateways.machine.maven import AT_ONCE, Artifact

Excluded = frozenset[tuple[str, str]]
"""Organisations and names, each of which may be ``*``."""
Key = tuple[str, str, str, str]

_RUNS_WITH = ("compile", "runtime")
_TYPES = {"bundle": "jar", "ejb": "jar", "maven-plugin": "jar", "test-jar": "jar"}
"""The extensions of the types that are not named as their files."""
_DEEPEST = 50
_HINT = "fetch it with Maven, and name the folder of the jars (--jars DIR, for a plugin --plugins DIR)"


@dataclass(frozen=True)
class Dependency:
    """What a POM says that its artifact needs, or how a dependency is managed."""

    organisation: str
    name: str
    version: str
    scope: str = ""
    type: str = "jar"
    classifier: str = ""
    optional: bool = False
    excluded: Excluded = frozenset()

    @property
    def key(self) -> Key:
        return self.organisation, self.name, self.type, self.classifier

    def artifact(self) -> Artifact:
        """Return the file of its version.

        :raises MissingRequirement: when the POM names none
        """
        exact = re.fullmatch(r"\[([^,]*)\]", self.version)
        version = exact[1].strip() if exact else self.version
        if not version or re.search(r"[\[\](),${}]", version):
            what = f"versions {version} of" if version else "no version of"
            raise MissingRequirement(f"a POM names {what} {self.organisation}:{self.name}, and kops needs one version", hint=_HINT)
        classifier = self.classifier or ("tests" if self.type == "test-jar" else "")
        return Artifact(self.organisation, self.name, version, classifier, _TYPES.get(self.type, self.type))


@dataclass
class Pom:
    """A POM with what its parents and the imported ones say."""

    packaging: str = "jar"
    dependencies: list[Dependency] = field(default_factory=list)
    managed: dict[Key, Dependency] = field(default_factory=dict)
    relocated: Dependency | None = None


def resolve(roots: Sequence[Artifact], read: Callable[[str], bytes], exclude: Iterable[str] = ()) -> list[Artifact]:
    """Return the jars with which artifacts run, they included.

    :param read: returns the content of a POM by its place in the repository; called in several threads
    :param exclude: organisations to leave out wherever they come up
    :raises MissingRequirement: when a POM is invalid, or names no version
    """
    poms = Poms(read)
    chosen: dict[Key, Artifact] = {}
    everywhere: Excluded = frozenset((organisation, "*") for organisation in exclude)
    level = [(Dependency(root.organisation, root.name, root.version), everywhere) for root in roots]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while level:
            nearest: dict[Key, tuple[Artifact, Excluded]] = {}
            for wanted, excluded in level:
                artifact = wanted.artifact() if wanted.key not in chosen and wanted.key not in nearest else None
                if artifact:
                    nearest[wanted.key] = artifact, excluded | wanted.excluded
            level = []
            for (key, (artifact, excluded)), pom in zip(
                nearest.items(), pool.map(poms.whole, [each for each, _ in nearest.values()]), strict=True
            ):
                has_jar = artifact.extension == "jar" and (pom.packaging != "pom" or artifact.classifier) and not pom.relocated
                chosen[key] = artifact if has_jar else replace(artifact, extension="pom")
                further = [pom.relocated] if pom.relocated else pom.dependencies
                level += [(each, excluded) for each in further if _is_needed(each, excluded)]
    return [artifact for artifact in chosen.values() if artifact.extension == "jar"]


def _is_needed(wanted: Dependency, excluded: Excluded) -> bool:
    names = ((organisation, name) for organisation in (wanted.organisation, "*") for name in (wanted.name, "*"))
    return not wanted.optional and (wanted.scope or _RUNS_WITH[0]) in _RUNS_WITH and not any(each in excluded for each in names)


class Poms:
    """The POMs of a repository."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read, self._whole = read, dict[Artifact, Pom]()

    def whole(self, artifact: Artifact) -> Pom:
        artifact = replace(artifact, classifier="", extension="pom")
        if artifact not in self._whole:
            self._whole[artifact] = self._make(artifact)
        return self._whole[artifact]

    def _make(self, artifact: Artifact) -> Pom:
        chain = [self._element(artifact)]
        while parent := _child(chain[-1], "parent"):
            if len(chain) > _DEEPEST:
                raise MissingRequirement(f"the POM of {artifact} has itself as a parent", hint=_HINT)
            chain.append(self._element(replace(_dependency(parent, {}).artifact(), extension="pom")))
        properties = _properties(artifact, chain)
        made = Pom(_filled(_text(chain[0], "packaging") or "jar", properties))
        imported: list[Dependency] = []
        for element in chain:
            for each in _dependencies(element.find("{*}dependencyManagement"), properties):
                if each.scope == "import" and each.type == "pom":
                    imported.append(each)
                else:
                    made.managed.setdefault(each.key, each)
        for each in imported:
            for key, managed in self.whole(each.artifact()).managed.items():
                made.managed.setdefault(key, managed)
        declared: dict[Key, Dependency] = {}
        for element in chain:
            for each in _dependencies(element, properties):
                declared.setdefault(each.key, each)
        made.dependencies = [_managed(each, made.managed.get(each.key)) for each in declared.values()]
        moved = chain[0].find("{*}distributionManagement/{*}relocation")
        if moved is not None:
            to = _dependency(moved, properties)
            made.relocated = replace(
                to,
                organisation=to.organisation or artifact.organisation,
                name=to.name or artifact.name,
                version=to.version or artifact.version,
            )
        return made

    def _element(self, artifact: Artifact) -> ElementTree.Element:
        try:
            return ElementTree.fromstring(self._read(artifact.place))  # noqa: S314 - expat bounds what entities expand to
        except ElementTree.ParseError as invalid:
            raise MissingRequirement(f"the POM of {artifact} is not valid XML: {invalid}", hint=_HINT) from invalid


def _properties(artifact: Artifact, chain: Sequence[ElementTree.Element]) -> dict[str, str]:
    """Return what ``${...}`` stands for in a POM, whose parents follow it."""
    found: dict[str, str] = {}
    for element in reversed(chain):
        for each in element.findall("{*}properties/*"):
            found[each.tag.rpartition("}")[2]] = (each.text or "").strip()
    own = {"groupId": artifact.organisation, "artifactId": artifact.name, "version": artifact.version}
    for name, value in own.items():
        found |= {f"project.{name}": value, f"pom.{name}": value}
        found.setdefault(name, value)
        if inherited := _text(chain[0], f"parent/{{*}}{name}"):
            found |= {f"project.parent.{name}": inherited, f"parent.{name}": inherited}
    return found


def _filled(text: str, properties: Mapping[str, str]) -> str:
    for _ in range(_DEEPEST):
        filled = re.sub(r"\$\{([^${}]+)\}", lambda found: properties.get(found[1].strip(), found[0]), text)
        if filled == text:
            break
        text = filled
    return text


def _child(element: ElementTree.Element, name: str) -> ElementTree.Element | None:
    found = element.find(f"{{*}}{name}")
    return found if found is not None and len(found) else None


def _text(element: ElementTree.Element, name: str) -> str:
    return (element.findtext(f"{{*}}{name}") or "").strip()


def _dependencies(element: ElementTree.Element | None, properties: Mapping[str, str]) -> list[Dependency]:
    return [] if element is None else [_dependency(each, properties) for each in element.findall("{*}dependencies/{*}dependency")]


def _dependency(element: ElementTree.Element, properties: Mapping[str, str]) -> Dependency:
    def text(name: str, of: ElementTree.Element = element) -> str:
        return _filled(_text(of, name), properties)

    excluded = frozenset(
        (text("groupId", each) or "*", text("artifactId", each) or "*") for each in element.findall("{*}exclusions/{*}exclusion")
    )
    return Dependency(
        text("groupId"),
        text("artifactId"),
        text("version"),
        text("scope"),
        text("type") or "jar",
        text("classifier"),
        text("optional") == "true",
        excluded,
    )


def _managed(wanted: Dependency, by: Dependency | None) -> Dependency:
    if by is None:
        return wanted
    return replace(wanted, version=wanted.version or by.version, scope=wanted.scope or by.scope, excluded=wanted.excluded or by.excluded)
