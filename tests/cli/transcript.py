"""What the commands print of a store with known figures: run by a process of its own, on a terminal or into a pipe.

python -m tests.cli.transcript STORE
"""

from __future__ import annotations

import sys

from jobmeter.cli.main import main

COMMANDS = (
    "ls",
    "ls --fields id,name,source,memory_peak,requirement_memory,command --sort memory_peak",
    "show hog",
    "stats",
    "stats --name train-lr* --by model",
    "check sweep",
    "check sweep --all",
    "check --name single",
    "size sweep",
    "compare label.model=a label.model=b",
    "workflow status sweep",
    "workflow results sweep",
)


def print_transcript(store: str) -> None:
    for number, line in enumerate(COMMANDS):
        sys.stdout.write(f"{chr(10) if number else ''}$ jobmeter {line}\n")
        sys.stdout.flush()
        main([*line.split(), "--store", store])
        sys.stdout.flush()


if __name__ == "__main__":
    print_transcript(sys.argv[1])
