"""`python -m benchmarks [accuracy|overhead|slowdown|reliability|budgets] [--tool NAME]... [--load NAME]...`."""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
import time

from benchmarks.peers import prepare
from benchmarks.slowdown import PAIRS

SECTIONS = ("accuracy", "overhead", "slowdown", "reliability", "budgets")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare jobmeter with other tools.")
    parser.add_argument("section", nargs="?", choices=SECTIONS, help="one section (default: all)")
    parser.add_argument("--tool", action="append", metavar="NAME", help="only this tool; may be given again")
    parser.add_argument(
        "--load", action="append", metavar="NAME", help="accuracy, slowdown: only this load; may be given again"
    )
    parser.add_argument(
        "--pairs", type=int, metavar="N", default=PAIRS, help="slowdown: how many (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    tools, missing = prepare(options.tool)
    print(f"{time.strftime('%Y-%m-%d')}, {platform.system()} {platform.release()}, Python {platform.python_version()}")
    for section in [options.section] if options.section else SECTIONS:
        only = {"accuracy": [options.load], "slowdown": [options.load, options.pairs]}.get(section, [])
        importlib.import_module(f"benchmarks.{section}").show(tools, missing, *only)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
