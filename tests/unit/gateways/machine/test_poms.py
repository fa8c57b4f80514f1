"""What a POM needs to run, by the rules of Maven: each in a repository of a few lines."""

import pytest

from kops.core.errors import MissingRequirement
from kops.gateways.machine.maven import Artifact
from kops.gateways.machine.poms import resolve

ROOT = Artifact("g", "root", "1")


def needs(name, version="1", more=""):
    return (
        f"<dependency><groupId>g</groupId><artifactId>{name}</artifactId>{version and f'<version>{version}</version>'}{more}</dependency>"
    )


def managed(*dependencies):
    return f"<dependencyManagement><dependencies>{''.join(dependencies)}</dependencies></dependencyManagement>"


def resolved(poms, exclude=()):
    """Resolve the root in a repository of POMs: by ``name:version``, what is in each beside its coordinates."""

    def read(place):
        _, name, version, _ = place.split("/")
        inner = poms.get(f"{name}:{version}", poms.get(name, ""))
        if isinstance(inner, tuple):
            inner = f"<dependencies>{''.join(inner)}</dependencies>"
        return f"<project xmlns='http://maven.apache.org/POM/4.0.0'><artifactId>{name}</artifactId>{inner}</project>".encode()

    return [artifact.file.removesuffix(".jar") for artifact in resolve([ROOT], read, exclude)]


def parent(name):
    return f"<parent><groupId>g</groupId><artifactId>{name}</artifactId><version>1</version></parent>"


IMPORTED = needs("bom", more="<type>pom</type><scope>import</scope>")
LEFT_OUT = "<exclusions><exclusion><groupId>g</groupId><artifactId>{}</artifactId></exclusion></exclusions>"
WITH_B = "<dependencies>" + needs("b", "") + "</dependencies>"


@pytest.mark.parametrize(
    ("poms", "expected"),
    [
        pytest.param({"root": (needs("a"), needs("b")), "a": (needs("c"),), "c": (needs("b", "9"),)}, ["a-1", "b-1", "c-1"], id="nearest"),
        pytest.param(
            {"root": (needs("a"), needs("b")), "a": (needs("c", "2"),), "b": (needs("c", "3"),)}, ["a-1", "b-1", "c-2"], id="first"
        ),
        pytest.param({"root": (needs("a"), needs("b", "2")), "a": (needs("b"),), "b:1": (needs("c"),)}, ["a-1", "b-2"], id="loser's needs"),
        pytest.param({"root": (needs("a"),), "a": (needs("root"),)}, ["a-1"], id="circle"),
        pytest.param(
            {"root": tuple(needs(scope, more=f"<scope>{scope}</scope>") for scope in ("compile", "runtime", "test", "provided", "system"))},
            ["compile-1", "runtime-1"],
            id="scopes",
        ),
        pytest.param({"root": (needs("a", more="<optional>true</optional>"),)}, [], id="optional"),
        pytest.param(
            {"root": (needs("a", more=LEFT_OUT.format("b")),), "a": (needs("c"),), "c": (needs("b"),)}, ["a-1", "c-1"], id="excluded"
        ),
        pytest.param({"root": (needs("a", more=LEFT_OUT.format("*")),), "a": (needs("b"),)}, ["a-1"], id="all excluded"),
        pytest.param({"root": managed(needs("b", "7")) + WITH_B}, ["b-7"], id="managed"),
        pytest.param({"root": managed(needs("b", "7", "<scope>test</scope>")) + WITH_B}, [], id="managed scope"),
        pytest.param({"root": parent("p") + WITH_B, "p": managed(needs("b", "7"))}, ["b-7"], id="managed by the parent"),
        pytest.param(
            {"root": parent("p") + managed(needs("b", "8")) + WITH_B, "p": managed(needs("b", "7"))}, ["b-8"], id="the child's counts"
        ),
        pytest.param({"root": managed(IMPORTED) + WITH_B, "bom": managed(needs("b", "7"))}, ["b-7"], id="managed by a BOM"),
        pytest.param(
            {"root": managed(IMPORTED, needs("b", "8")) + WITH_B, "bom": managed(needs("b", "7"))}, ["b-8"], id="its own before a BOM's"
        ),
        pytest.param(
            {
                "root": f"{parent('p')}<properties><v>3</v></properties>",
                "p": f"<properties><v>2</v><w>${{v}}</w></properties><dependencies>{needs('b', '${w}')}</dependencies>",
            },
            ["b-3"],
            id="properties of the child in the parent",
        ),
        pytest.param({"root": (needs("a", "${project.version}"), needs("b", "[2]"))}, ["a-1", "b-2"], id="own version, and a range of one"),
        pytest.param(
            {"root": (needs("a", more="<classifier>linux</classifier>"), needs("a"), needs("b", more="<type>test-jar</type>"))},
            ["a-1-linux", "a-1", "b-1-tests"],
            id="classifiers",
        ),
        pytest.param({"root": (needs("a", more="<type>pom</type>"),), "a": (needs("b"),)}, ["b-1"], id="a POM alone"),
        pytest.param(
            {
                "root": (needs("a"),),
                "a": "<distributionManagement><relocation><artifactId>new</artifactId></relocation></distributionManagement>",
                "new": (needs("b"),),
            },
            ["new-1", "b-1"],
            id="relocated",
        ),
    ],
)
def test_what_a_pom_needs(poms, expected):
    assert resolved(poms) == ["root-1", *expected]


def test_an_organisation_is_left_out_but_for_what_is_wanted_itself():
    assert resolved({"root": (needs("a"),)}, exclude=("g",)) == ["root-1"]


@pytest.mark.parametrize(
    ("poms", "why"),
    [
        ({"root": (needs("a", "[1,2)"),)}, r"names versions \[1,2\) of g:a, and kops needs one version"),
        ({"root": (needs("a", "${no.such}"),)}, r"names versions \$\{no.such\} of g:a"),
        ({"root": (needs("a", ""),)}, "names no version of g:a"),
        ({"root": parent("root")}, "the POM of g:root:1 has itself as a parent"),
        ({"root": "<"}, "the POM of g:root:1 is not valid XML"),
    ],
)
def test_what_names_no_version_is_refused(poms, why):
    with pytest.raises(MissingRequirement, match=why) as refused:
        resolved(poms)
    assert "--jars" in refused.value.hint
