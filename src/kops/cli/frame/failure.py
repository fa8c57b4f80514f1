"""Errors for people and for programs: one line and a hint, or a JSON object; always on stderr."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click

from kops.core.errors import ExitCode, KopsError
from kops.core.stops import STOPS, exit_code
from kops.core.suggestions import completed, words_of
from kops.core.visible import indented
from kops.output.colour import BAD, has_colours, painted, write_coloured
from kops.output.json_text import json_text

ISSUES = "please report this, with the output of the same command with --debug"


def report(error: BaseException, argv: Sequence[str]) -> int:
    """Write an error to stderr and return its exit code."""
    body, code = describe(error)
    words = words_of(argv)
    body |= {part: completed(str(body[part]), words) for part in ("message", "hint") if body.get(part)}
    debug = "--debug" in argv or bool(os.environ.get("KOPS_DEBUG"))
    if debug:
        traceback.print_exception(error)
    if wants_json(argv):
        click.echo(json_text({"version": 1, "status": "failed", "items": [], "errors": [body]}), err=True)
        return code
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
    sign = "kops: error:"
    if has_colours(sys.stderr):
        write_coloured(painted(sign, BAD), sys.stderr)
        sign = ""
    click.echo(f"{sign} {indented(str(body['message']))}", err=True)
    if body.get("hint"):
        click.echo(f"hint: {indented(str(body['hint']))}", err=True)
    return code


def describe(error: BaseException) -> tuple[dict[str, object], int]:
    if isinstance(error, ImportError):
        from kops.core.extras import missing_extra

        error = missing_extra(error) or error
    if isinstance(error, KopsError):
        return error.as_json(), int(error.exit_code)
    if isinstance(error, click.ClickException):
        body = {"code": "usage", "message": error.format_message(), "exit_code": error.exit_code}
        if isinstance(error, click.UsageError) and error.ctx is not None:
            body["hint"] = f"try `{error.ctx.command_path} --help`"
        return body, error.exit_code
    if isinstance(error, (*STOPS, click.Abort)):
        code = exit_code(error)
        name = code.name.lower()
        return {"code": name, "message": f"{name}; no plan was being carried out", "exit_code": int(code)}, int(code)
    if "py4j" in sys.modules:
        from kops.operations.engine.spark import lost_spark

        if lost := lost_spark(error):
            return describe(lost)
    message = f"bug: {type(error).__name__}: {error}"
    return {"code": "bug", "message": message, "hint": ISSUES, "exit_code": 1}, int(ExitCode.FAILED)


def wants_json(argv: Sequence[str]) -> bool:
    """Whether ``-o json`` is among the arguments; the parser may have failed before it got there."""
    joined = " ".join(argv[: argv.index("--")] if "--" in argv else argv)
    return any(form in f" {joined} " for form in (" -o json ", " -ojson ", " --output json ", " --output=json "))
