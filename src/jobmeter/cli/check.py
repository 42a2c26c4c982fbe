"""`jobmeter check`: compares what runs used with what they requested."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jobmeter.byte_text import json_text
from jobmeter.cli.shared.filters import add_filter_options, selection
from jobmeter.cli.shared.options import Parser, add_store_option, option_type, percentage
from jobmeter.cli.shared.output import print_line, warn
from jobmeter.cli.shared.sentences import print_sentences
from jobmeter.cli.shared.spec_edits import add_fix_options, check_it_is_theirs, plan_to_fix, print_rewritten, rewrite
from jobmeter.errors import UsageError
from jobmeter.garbage import no_collection
from jobmeter.settings import positive_whole_number, resolve

if TYPE_CHECKING:
    from jobmeter.analyse.check import Checked, JobVerdict
    from jobmeter.cli.shared.spec_edits import Rewritten
    from jobmeter.store import Store
    from jobmeter.store.query.check_subject import Subject
    from jobmeter.store.query.overuse import RunsToCheck
    from jobmeter.workflow.plan import Plan

_SHOWN = 50
"""The most lines in the table; --json has no limit."""
_HINTS = 10


class CheckResult(NamedTuple):
    subject: Subject
    runs: RunsToCheck
    checked: Checked
    rewritten: Rewritten | None

    @property
    def failed(self) -> int:
        """The number of jobs that failed for another reason than a limit, also if not all rows were fetched."""
        from jobmeter.store.query.overuse import UNSUCCESSFUL

        failures = len(self.checked.failures)
        return self.runs.failed - sum(row["status"] in UNSUCCESSFUL for row in self.runs.rows) + failures

    @property
    def has_several_workflows(self) -> bool:
        """Whether the jobs are of several workflow runs: the number of a job alone does not identify it then."""
        runs = {(row.get("workflow"), row.get("workflow_run")) for row in self.runs.rows}
        return len(runs) > 1


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    plan = plan_to_fix(options, "--fix")

    from jobmeter.analyse.check import check
    from jobmeter.store import open_store
    from jobmeter.store.query.check_subject import subject
    from jobmeter.store.query.overuse import runs_to_check
    from jobmeter.workflow.current_requests import current_requests

    store = open_store(resolve("store", options.store), warn)
    names = options.names or ([plan.name] if plan else [])
    with no_collection():  # of tens of thousands of rows, which would take longer than all the rest
        chosen = subject(store, names, selection(options), options.run_id)
        runs = runs_to_check(store, chosen.condition, everything=options.all)
        current = current_requests(store.location, runs.rows)
        checked = check(runs.rows, options.min_over, everything=options.all, current=current)
    if plan:
        check_it_is_theirs(plan, runs.rows)
    rewritten = _fix(store, plan, chosen, checked, diff=options.diff) if plan else None
    result = CheckResult(chosen, runs, checked, rewritten)
    if options.json:
        _print_json(_object(result, everything=options.all))
    elif rewritten is not None and options.diff:
        print_rewritten(rewritten, diff=True)  # and nothing else, so that `patch` can read it
    else:
        _print(result, everything=options.all)
    return 1 if checked.violations and not options.exit_zero else 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "check",
        "Report which jobs used more memory, CPU or time than they requested. Without names: the newest run, or if "
        "that is of a workflow, the workflow's newest run. Exit code 1 when there are some.",
    )
    add = parser.add_argument
    add(
        "names", nargs="*", metavar="WORKFLOW|RUN", help="a workflow by id or name; a run by id, prefix, name or `last`"
    )
    number = option_type("--run-id", positive_whole_number)
    add("--run-id", metavar="N", type=number, help="which run of the workflow: 1, 2, 3 …")
    add("--all", action="store_true", help="show every job and resource, also those within the request")
    over = option_type("--min-over", percentage)
    add(
        "--min-over",
        metavar="PERCENT",
        type=over,
        default=1.0,
        help="report over-use of this much or more (default 1.0)",
    )
    add("--json", action="store_true", help="print an object")
    add("--exit-zero", action="store_true", help="exit code 0 also when a job used more than it requested")
    add_fix_options(parser, "--fix", "correct the requests of over-used resources in this workflow spec")
    add_filter_options(parser)
    add_store_option(parser)
    return parser.parse_args(arguments)


def _fix(store: Store, plan: Plan, chosen: Subject, checked: Checked, *, diff: bool) -> Rewritten:
    from jobmeter.workflow.corrected_requests import corrected_requests

    requested = {job.step: job.requirement for job in plan.jobs}
    strangers = sorted({each.job.step for each in checked.violations} - set(requested))
    if strangers:
        raise UsageError(f"{plan.path}: has no job {strangers[0]!r}. Name the spec of these jobs.")
    workflow = chosen.workflow or store.find_workflow(plan.name)
    corrected = corrected_requests(store, workflow, checked.violations, requested)
    for step in corrected.unknown:
        warn(f"{step}: none of its runs has completed, so what it needs is unknown; its request is not changed")
    return rewrite(plan, corrected.sizes, diff=diff)


def _object(result: CheckResult, *, everything: bool) -> dict[str, Any]:
    from jobmeter.analyse.waste import wasted_requests
    from jobmeter.report.check import failure_object, opportunity_object, verdict_object

    violations = result.checked.violations
    answer: dict[str, Any] = {
        "workflow_id": result.subject.workflow,
        "run_id": result.subject.run,
        "total_results": result.runs.total,
        "over_utilization_count": len(violations),
        "violations": [verdict_object(each) for each in violations],
        "failures_count": result.failed,
        "failures": [failure_object(failure) for failure in result.checked.failures],
        "opportunities": [opportunity_object(one) for one in wasted_requests(result.runs.rows)]
        if result.runs.is_all
        else [],
    }
    if everything:
        answer["results"] = [
            {**verdict_object(each), "violation": each.verdict.is_over} for each in result.checked.verdicts
        ]
    if result.rewritten is not None:
        answer["fix"] = result.rewritten._asdict()
    return answer


def _print_json(answer: dict[str, Any]) -> None:
    """Print one object per line. `json_text` with an indent takes seconds for thousands of them."""
    parts = []
    for name, value in answer.items():
        lines = ",\n".join(f"    {json_text(entry)}" for entry in value) if isinstance(value, list) else ""
        parts.append(f"  {json_text(name)}: " + (f"[\n{lines}\n  ]" if lines else json_text(value)))
    sys.stdout.write("{\n" + ",\n".join(parts) + "\n}\n")


def _print(result: CheckResult, *, everything: bool) -> None:
    from jobmeter.report.check import headline, headline_of_many

    if not result.runs.total:
        warn("no runs found")
        return
    violations = result.checked.violations
    if result.runs.is_all:
        print_line(headline(violations, result.checked.tally))
    else:
        print_line(headline_of_many(violations, result.runs.total))
    lines = result.checked.verdicts if everything else violations
    if lines:
        print_line()
        shown = lines if everything else lines[:_SHOWN]
        _print_lines(shown, with_workflow=result.has_several_workflows)
        if len(shown) < len(lines):
            warn(f"{len(lines) - len(shown):,} more lines are not shown; --json has all")
    _print_failures(result)
    _print_opportunities(result)
    if result.rewritten is not None:
        print_rewritten(result.rewritten, diff=False)


def _print_lines(lines: Sequence[JobVerdict], *, with_workflow: bool) -> None:
    from jobmeter.cli.shared.tables import print_table
    from jobmeter.report.check import COLUMNS, WORKFLOW, cells, style, workflow_name

    columns, rows = list(COLUMNS), [cells(line) for line in lines]
    if with_workflow:
        columns = [WORKFLOW, *columns]
        rows = [[workflow_name(line.job), *row] for line, row in zip(lines, rows)]
    print_table(columns, rows, style=style)


def _print_failures(result: CheckResult) -> None:
    from jobmeter.report.check import failure_lines

    failures, count = result.checked.failures, result.failed
    if not failures:
        return
    other = " for another reason" if result.checked.violations else ""
    print_line()
    print_line(f"{'1 job' if count == 1 else f'{count:,} jobs'} failed{other}:")
    shown = failures[: _SHOWN if result.runs.is_all else _HINTS]
    print_sentences(f"  {line}" for line in failure_lines(shown, with_workflow=result.has_several_workflows))
    if len(shown) < count:
        print_line(f"  … and {count - len(shown):,} more")


def _print_opportunities(result: CheckResult) -> None:
    from jobmeter.analyse.waste import wasted_requests
    from jobmeter.report.check import opportunity_text

    some = wasted_requests(result.runs.rows) if result.runs.is_all else []
    if not some:
        return
    print_line()
    print_line("Requested more than needed:")
    print_sentences(f"  {opportunity_text(one)}" for one in some[:_HINTS])
    if len(some) > _HINTS:
        print_line(f"  … and {len(some) - _HINTS:,} more; --json has all")
