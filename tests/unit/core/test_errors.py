"""Errors: the exit codes of the table, and the error object."""

import click
import pytest

from kops.cli.frame.failure import describe, wants_json
from kops.core import errors
from kops.core.errors import ExitCode, KopsError, Terminated

CODES = {
    "OperationFailed": 1,
    "CouldNotTell": 7,
    "NotFound": 1,
    "VerificationFailed": 1,
    "UndecodableRecord": 1,
    "UsageProblem": 2,
    "ConfigError": 2,
    "MissingRequirement": 2,
    "Unreachable": 3,
    "BrokerDown": 3,
    "AuthenticationFailed": 3,
    "AuthorizationFailed": 1,
    "TimedOut": 4,
    "Refused": 5,
    "NothingToUndo": 5,
    "ApprovalRequired": 5,
    "StateMoved": 5,
    "AlreadyExists": 5,
    "SecurityDisabled": 5,
    "GroupActive": 5,
    "BrokersTooOld": 5,
    "ReadOnlyContext": 5,
}


def classes():
    return {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, KopsError) and kind is not KopsError
    }


def test_every_error_has_its_exit_code():
    assert {name: int(kind.exit_code) for name, kind in classes().items()} == CODES


def test_error_slugs_are_unique():
    slugs = [kind.slug for kind in classes().values()]
    assert len(set(slugs)) == len(slugs)
    assert all(slug == slug.lower() and " " not in slug for slug in slugs)


def test_error_as_json():
    assert KopsError("it broke").as_json() == {"code": "failed", "message": "it broke", "exit_code": 1}
    whole = errors.NotFound("no topic x", hint="look", topic="x").as_json()
    assert whole == {"code": "not_found", "message": "no topic x", "exit_code": 1, "hint": "look", "details": {"topic": "x"}}


@pytest.mark.parametrize(
    ("error", "code", "slug"),
    [
        (errors.Refused("no"), ExitCode.REFUSED, "refused"),
        (click.UsageError("what?"), ExitCode.USAGE, "usage"),
        (click.BadParameter("what?"), ExitCode.USAGE, "usage"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "interrupted"),
        (click.Abort(), ExitCode.INTERRUPTED, "interrupted"),
        (Terminated(), ExitCode.TERMINATED, "terminated"),
        (ZeroDivisionError("x"), ExitCode.FAILED, "bug"),
    ],
)
def test_any_exception_becomes_an_exit_code(error, code, slug):
    body, actual = describe(error)
    assert (actual, body["code"], body["exit_code"]) == (code, slug, code)


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["topics", "-o", "json"], True),
        (["-ojson", "topics"], True),
        (["topics", "--output=json", "x"], True),
        (["topics", "--output", "json"], True),
        (["topics", "-o", "table"], False),
        (["topics", "--", "-o", "json"], False),
        ([], False),
    ],
)
def test_usage_errors_are_json_with_output_json(argv, wanted):
    assert wants_json(argv) is wanted
