"""The options of `jobmeter bench`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from jobmeter.analyse.bench import BENCH_MEASURES
from jobmeter.cli.bench.plan import Hooks, Template, parse_parameter
from jobmeter.cli.bench.saved import check_name
from jobmeter.cli.run import CONTAINER_OPTIONS, add_container_options
from jobmeter.cli.shared.options import Parser, add_store_option, fraction, option_type, refuse_given
from jobmeter.errors import UsageError
from jobmeter.report.bench.formats import FORMATS, format_of
from jobmeter.settings import label, positive_whole_number, whole_number

JUDGED = {measure.name: measure for measure in BENCH_MEASURES}
"""The measures that can be compared with a baseline, by name."""
_USUALLY_JUDGED = ("wall", "cpu", "memory_peak")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse and check the options. `templates` holds the commands."""
    texts, words = _split(arguments)
    options = make_parser().parse_args(texts)
    options.templates = [Template(text, None) for text in options.commands]
    if words is not None:
        options.templates.append(Template(shlex.join(words), words))
    if not options.templates:
        raise UsageError("bench: no command given. Write: jobmeter bench [options] -- COMMAND [ARGUMENT...]")
    if options.container is None:
        refuse_given(options, CONTAINER_OPTIONS, "has no effect without --container IMAGE")
    if options.baseline is None:
        refuse_given(options, ["tolerance", "judge"], "has no effect without --baseline NAME")
    options.parameters = _parameters(options.param)
    options.hooks = Hooks(options.setup, options.prepare, options.conclude, options.cleanup)
    return options


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """The arguments before `--`, and the words of the command after it; None if there is no `--`."""
    if "--" not in arguments:
        return list(arguments), None
    at = list(arguments).index("--")
    words = list(arguments[at + 1 :])
    if not words:
        raise UsageError("bench: there is no command after `--`")
    return list(arguments[:at]), words


def make_parser() -> Parser:
    parser = Parser(
        "bench",
        "Run a command again and again, or several in turns, and show what each uses. Exit code 1 when something is "
        "worse than the baseline.",
        usage="jobmeter bench [options] -- COMMAND [ARGUMENT...]\n"
        "       jobmeter bench [options] 'COMMAND' 'COMMAND' ...",
    )
    add = parser.add_argument
    add("commands", nargs="*", metavar="COMMAND", help="a whole command, as in a shell; several are compared")
    count = option_type("--runs", positive_whole_number)
    add("-r", "--runs", metavar="N", type=count, default=10, help="runs of each variant (default 10)")
    warmup = option_type("--warmup", whole_number)
    add("--warmup", metavar="N", type=warmup, default=0, help="runs before those, which do not count (default 0)")
    parameter = option_type("--param", parse_parameter)
    values = "values for {NAME} in the commands: a variant for each; may be given again"
    add("-P", "--param", metavar="NAME=VALUES", type=parameter, action="append", default=[], help=values)
    add(
        "--workers",
        metavar="NAME",
        help="the parameter that is the number of workers (default: the one that is called n, jobs, threads, …)",
    )
    name = "what to call a command; give one for each"
    add("-n", "--command-name", metavar="NAME", action="append", default=[], help=name)
    shell = "run commands by this shell, or by `none` (default: by sh, where a command needs one)"
    add("-S", "--shell", metavar="PATH", help=shell)
    add("-s", "--setup", metavar="COMMAND", help="once before the runs of each variant")
    add("-p", "--prepare", metavar="COMMAND", help="before every run, as to clear a cache")
    add("--conclude", metavar="COMMAND", help="after every run")
    add("-c", "--cleanup", metavar="COMMAND", help="once after the runs of each variant")
    add("-i", "--ignore-failure", action="store_true", help="count runs that fail, too")
    add("--show-output", action="store_true", help="leave stdin, stdout and stderr to the commands")
    _add_result_options(parser)
    _add_measure_options(parser)
    add_container_options(parser)
    return parser


def _add_result_options(parser: Parser) -> None:
    add = parser.add_argument_group("results").add_argument
    output = f"write the results to FILE, by its extension: {', '.join(FORMATS)}; may be given again"
    add("-o", "--output", metavar="FILE", type=_output, action="append", default=[], help=output)
    add("--json", action="store_true", help="print the results as an object")
    add("--save", metavar="NAME", type=option_type("--save", check_name), help="save them in the store, as a baseline")
    baseline = "compare with what was saved by NAME, or with a FILE.json"
    add("--baseline", metavar="NAME", help=baseline)
    tolerance = "a smaller increase is no regression (default 5)"
    add("--tolerance", metavar="PERCENT", type=option_type("--tolerance", fraction), help=tolerance)
    judge = f"figures to check for regressions: {', '.join(JUDGED)} (default {', '.join(_USUALLY_JUDGED)})"
    add("--judge", metavar="FIGURES", type=option_type("--judge", _judged), help=judge)


def _add_measure_options(parser: Parser) -> None:
    group = parser.add_argument_group("every run")
    add = group.add_argument
    add("--name", metavar="NAME", help="what to call the runs (default: the command's name)")
    labels = option_type("--label", label)
    add("--label", metavar="KEY=VALUE", action="append", default=[], type=labels, help="a label; may be given again")
    add("--interval", metavar="TIME", help="time between samples (default 1s; the first ones come faster)")
    add("--measurements", metavar="KEYS", help="keys, globs, `default`, `all` or `none`, with commas; -KEY excludes")
    add_store_option(group)


def judged_measures(options: argparse.Namespace) -> list[str]:
    return options.judge or list(_USUALLY_JUDGED)


def _parameters(given: Sequence[tuple[str, list[str]]]) -> dict[str, list[str]]:
    parameters = dict(given)
    if len(parameters) < len(given):
        raise UsageError("--param: a parameter is given twice. Write all its values in one: --param n=1,2,4")
    return parameters


def _output(path: str) -> str:
    if format_of(path) is None:
        raise UsageError(f"-o: {path}: the extension says what to write, and is one of {', '.join(FORMATS)}")
    return path


def _judged(words: str) -> list[str]:
    return [_judged_name(word.strip().lower()) for word in words.split(",")]


def _judged_name(word: str) -> str:
    """Find a measure by its name, the start of its name or its key: `memory_peak`, `memory`, `memory_peak_bytes`."""
    for name, measure in JUDGED.items():
        if word and (name.startswith(word) or word == measure.key):
            return name
    raise UsageError(f"{word!r} is not one of {', '.join(JUDGED)}")
