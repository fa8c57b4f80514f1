"""The list of the checks, and that nothing else has to be kept in step with it by hand."""

from pathlib import Path

from kops.core.diagnosis.causes import CAUSES
from kops.operations.diagnose import checks
from kops.operations.diagnose.checks import every_check

ROOT = Path(__file__).parents[4]
FINDS = {name for check in every_check() for name in check.finds}


def test_every_module_is_a_check():
    modules = [path.stem for path in Path(checks.__file__).parent.glob("*.py") if path.stem != "__init__"]
    assert len(every_check()) == len(modules)
    assert len({(check.subject, check.name) for check in every_check()}) == len(modules)


def test_reasons_and_what_follows_are_findings_of_checks():
    assert {*CAUSES, *(cause for causes in CAUSES.values() for cause in causes)} <= FINDS


def test_every_finding_of_a_check_is_documented():
    """Those of the cluster itself stand on its own page."""
    pages = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("diagnose.md", "cluster.md"))
    assert not sorted(name for name in FINDS if f"`{name}`" not in pages)
