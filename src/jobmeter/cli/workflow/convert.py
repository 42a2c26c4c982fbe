"""`jobmeter workflow convert`: a spec in another format, or made from the graph of another tool."""

from __future__ import annotations

import argparse
import os

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
from jobmeter.errors import UsageError
from jobmeter.links import open_output
from jobmeter.terminal import data_output
from jobmeter.workflow.spec.read.loading import FORMATS, format_of, is_spec, read_text

_KINDS = {name.lower(): name for name in FORMATS.values()}


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    kind = _kind(options)
    text, jobs, losses = _converted(options, kind)
    _write(options.output, text)
    for loss in losses:
        warn(f"not carried over: {loss}")
    if options.output is not None:
        warn(f"{options.output}: {jobs:,} job{'s' * (jobs != 1)}")
        _warn_of_paths(options.source, options.output)
    return 0


def _kind(options: argparse.Namespace) -> str:
    if options.to is None and options.output is None:
        raise UsageError("name a file with -o FILE, or a format with --to FORMAT to print it")
    if options.to is not None:
        return _KINDS[options.to]
    return format_of(options.output)


def _converted(options: argparse.Namespace, kind: str) -> tuple[str, int, list[str]]:
    extra = options.trace or options.summary
    if is_spec(options.source):
        if extra is not None:
            raise UsageError("--trace and --summary go with a graph of Nextflow or Snakemake, and this is a spec")
        from jobmeter.workflow.spec.convert.conversion import convert_spec

        converted = convert_spec(options.source, kind)
        return converted.text, converted.jobs, converted.losses
    from jobmeter.workflow.spec.convert.conversion import write_values
    from jobmeter.workflow.spec.convert.foreign import foreign_spec, is_foreign

    text = read_text(options.source)
    if not is_foreign(text):
        formats = (
            "a spec, a graph of `snakemake --dag` or `nextflow -with-dag` (DOT, Mermaid), nor a summary of Snakemake"
        )
        raise UsageError(f"{options.source}: is neither {formats}")
    name = os.path.splitext(os.path.basename(options.output or options.source))[0]
    spec = foreign_spec(options.source, text, name, None if extra is None else (extra, read_text(extra)))
    notes = [
        f"Made from a graph of {spec.tool}, as a starting point. Not carried over:",
        *(f"- {x}" for x in spec.losses),
    ]
    return write_values(spec.values, kind, notes), len(spec.values["jobs"]), spec.losses


def _write(path: str | None, text: str) -> None:
    if path is None:
        data_output().write(text)
        return
    if os.path.exists(path):
        raise UsageError(f"{path}: is there already. Name another file, or remove it first.")
    try:
        with open(open_output(path), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}. Name a file in a directory that you may write to.") from None


def _warn_of_paths(source: str, output: str) -> None:
    if is_spec(source) and os.path.dirname(os.path.abspath(source)) != os.path.dirname(os.path.abspath(output)):
        warn(f"paths in a spec are seen from its directory: check those in {output}")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "workflow convert",
        "Write a spec in another format, with the comments where both have them; or make one, as a starting point, "
        "from a graph of `snakemake --dag` or `nextflow -with-dag`. What could not be carried over is listed.",
    )
    parser.add_argument("source", metavar="SPEC", help="a spec, or a graph in DOT or Mermaid, or a Snakemake summary")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it; the format is that of its extension")
    parser.add_argument("--to", metavar="FORMAT", choices=[*_KINDS], help=f"the format: {', '.join(_KINDS)}")
    extra = parser.add_mutually_exclusive_group()
    extra.add_argument("--summary", metavar="FILE", help="of Snakemake: what --summary or --detailed-summary printed")
    extra.add_argument("--trace", metavar="FILE", help="of Nextflow: what -with-trace wrote")
    return parser.parse_args(arguments)
