"""`jobmeter workflow validate`: all that is wrong with specs, and where."""

from __future__ import annotations

import argparse
from typing import Any

from jobmeter.byte_text import to_text
from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import print_json, print_line, warn
from jobmeter.errors import UsageError
from jobmeter.workflow.spec.read.spec_errors import Problem, SpecRefused, path_text
from jobmeter.workflow.validation import validate


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    results = [_validate(path) for path in options.specs]
    if options.json:
        print_json(results)
    else:
        for result in results:
            _print(result)
    return 1 if any(result["problems"] for result in results) else 0


def _validate(path: str) -> dict[str, Any]:
    about: dict[str, Any] = {"spec": to_text(path)}
    try:
        validation = validate(path)
    except SpecRefused as refused:
        return {**about, "problems": [_problem(problem) for problem in refused.problems]}
    except UsageError as error:
        return {**about, "problems": [{"message": line.removeprefix(f"{path}: ")} for line in error.lines]}
    problems = [{"message": line} for line in validation.missing]
    return {**about, "jobs": validation.jobs, "problems": problems, "without_effect": validation.unused.names()}


def _problem(problem: Problem) -> dict[str, Any]:
    place = {"line": problem.place.line, "column": problem.place.column} if problem.place else {}
    field = {"field": path_text(problem.path)} if problem.path else {}
    return {**place, **field, "message": problem.text}


def _print(result: dict[str, Any]) -> None:
    """Print each problem in the format of compilers, so that editors find the place."""
    spec = result["spec"]
    for problem in result["problems"]:
        place = f":{problem['line']}:{problem['column']}" if "line" in problem else ""
        field = f" {problem['field']}:" if "field" in problem else ""
        print_line(f"{spec}{place}:{field} {problem['message']}")
    if not result["problems"]:
        jobs = result["jobs"]
        print_line(f"{spec}: {jobs:,} job{'s' * (jobs != 1)}, nothing is wrong")
    if unused := result.get("without_effect"):
        warn(f"{spec}: without effect on this machine: {', '.join(unused)}")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow validate",
        "Report all that is wrong with specs, each problem with its line and column, and start nothing. "
        "Exit code 0 when nothing is, else 1.",
    )
    parser.add_argument("specs", nargs="+", metavar="SPEC", help="a file in YAML, JSON, JSON5, TOML or KDL")
    parser.add_argument("--json", action="store_true", help="print an array with an object for each spec")
    return parser.parse_args(arguments)
