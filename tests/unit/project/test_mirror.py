"""``tests/unit`` mirrors ``src/kops``: where the tests of a module are follows from where the module is."""

from pathlib import Path

import pytest

UNIT = Path(__file__).parents[1]
SOURCE = UNIT.parents[1] / "src" / "kops"
OF_SEVERAL_MODULES = {
    "test_earlier_plans.py": "plans and entries in files, through planning, applying, undoing and the journal",
    "config/test_kafka_python_tls.py": "one certificate through config and both Kafka clients",
    "formats/streams/test_joins.py": "the five layouts that joins write",
    "formats/test_hostile_values.py": "every format",
    "output/test_hostile_services.py": "every verb that asks Connect or a registry",
    "output/test_strangers.py": "every way out, to a terminal, a pipe and a file",
    "output/test_strangers_every_verb.py": "every verb",
    "sandbox/test_json_keys.py": "every verb of the sandbox",
}


def modules_of_tests():
    """Return the test modules below ``tests/unit``, but for those about the project as a whole."""
    return sorted(str(file.relative_to(UNIT)) for file in UNIT.rglob("test_*.py") if file.parent.name != "project")


def is_mirror(test):
    """Whether a module or package has the name of the test module, or that name and more: ``test_client_faults.py`` tests ``client``."""
    words = Path(test).stem.split("_")[1:]
    names = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
    folder = SOURCE / Path(test).parent
    return any((folder / f"{name}.py").exists() or (folder / name).is_dir() for name in names)


@pytest.mark.parametrize("test", modules_of_tests())
def test_each_test_module_is_named_after_a_module(test):
    assert is_mirror(test) or {test, Path(test).name} & OF_SEVERAL_MODULES.keys()


def test_exceptions_are_still_needed():
    found = modules_of_tests()
    for name in OF_SEVERAL_MODULES:
        assert any(test in (name, f"{Path(test).parent}/{name}") and not is_mirror(test) for test in found), name
