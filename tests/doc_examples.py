"""The examples of the documentation: ```console blocks, run and compared with the output that they show.

In a block, `$ COMMAND` may be followed by the output it prints. An example without output is only run. A line `…`
stands for any lines. Figures, ids, times, paths, sources and qualities differ between machines and are masked: words
and layout count. The exit code is 0; another one is shown by `$ echo $?` after the command, or for the last command of
a block by `<!-- exit: N -->` before the block. Commands of a block after `<!-- columns: N -->` are run on a terminal
of that width, all others with a pipe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ANY_LINES = "…"
_FENCED = re.compile(
    r"(?:^<!-- exit: (\d+) -->\n)?(?:^<!-- columns: (\d+) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
_EXIT_CODE = "echo $?"


class Example(NamedTuple):
    """A command of a page, what it shows of its output, and its exit code."""

    command: str
    output: list[str]
    exit_code: int = 0
    columns: int = 0  # of the terminal that it is run on; 0: its output is a pipe


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    exit_code: int
    columns: int


def blocks(page: Path, language: str) -> list[Block]:
    """The blocks of a page that are in a language."""
    fenced = _FENCED.findall(page.read_text())
    parsed = (Block(name, text, int(code or 0), int(columns or 0)) for code, columns, name, text in fenced)
    return [block for block in parsed if block.language == language]


def examples(page: Path) -> Iterator[Example]:
    """The examples of a page, in order."""
    for block in blocks(page, "console"):
        for example in parse_block(block.text, block.exit_code):
            yield example._replace(columns=block.columns)


def parse_block(text: str, exit_code: int = 0) -> list[Example]:
    """The examples of the text of one block."""
    parsed: list[Example] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            parsed.append(Example(line[2:], []))
        elif parsed:
            parsed[-1].output.append(line)
        else:
            raise ValueError(f"output without a command: {line}")
    if parsed and parsed[-1].command != _EXIT_CODE:
        parsed[-1] = parsed[-1]._replace(exit_code=exit_code)
    merged: list[Example] = []
    for example in parsed:
        if example.command == _EXIT_CODE:
            merged[-1] = merged[-1]._replace(exit_code=int(example.output[0]))
        else:
            merged.append(example)
    return merged


_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?"
_UNIT = r"(?: ?(?:ms|min|s|h|m|d|[KMGT]iB|[KMGT]?B|GB-h|%|[KMGkg])(?![\w/]))?"
_MASKS = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"/home/ada/\.local/share/jobmeter|~/\.local/share/jobmeter", "STORE"),
    (r"\b(jobmeter|Python|Linux|Docker|Podman) \d[^\s,]*", r"\1 VERSION"),
    (r"by \S+ on \S+", "by USER on HOST"),
    (r'("user": |"host": )"[^"]*"', r'\1"NAME"'),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?", "TIME"),
    (r"\bPT(?:\d+[HMS])+", "DURATION"),
    (r"(?<![\w-])(?:[0-9a-f]{64}|[a-z0-9]{12})(?![\w-])", "ID"),
    (r"-[a-z0-9]{6}\.", "-ID."),
    (r"(?<=\w)-[0-9a-f]{6}(?![\w-])", "-ID"),  # of a submitted job
    (r"[▁▂▃▄▅▆▇█]+", "BARS"),
    (r"≥ ?|< (?=\d)", ""),
    (r"\b(?:exact|sampled|at least)(?=,| +\w+_| +$)", "QUALITY"),
    (r"\bQUALITY, \w+", "QUALITY, SOURCE"),
    (r"\b(?:cgroup|perf|rusage|proc|psutil|ps)_[a-z_]+", "SOURCE"),
    (r"(?<![\w#])[+-]?" + _NUMBER + _UNIT, "#"),
    (r"# to #", "#"),
    (r"at least # at the peak", "# at most"),
    (r"(?:at least|under) #", "#"),
    (r"#(?: #)+", "#"),
    (r"; what it requests today wastes .* a run", ""),
    # Of the tags of a line of the summary, those that are alike stand once.
    (r" \[QUALITY, SOURCE\](?=.*\[QUALITY, SOURCE\])", ""),
    # A short run has no peak of CPU, and may have no mean of memory.
    (r"^(\s*CPU .*), # at most( \[)", r"\1\2"),
    (r"^(\s*memory .*), # on average( \[)", r"\1\2"),
    (r"[-─━]{3,}", "---"),
    (r"\s+", " "),
)  # fmt: skip


_WASTE = re.compile(r"too much |Requested more than needed:|.* less would free .* a run$")
"""Waste is reported for runs of ten seconds or more: on a busy machine, an example can take so long."""


def mask(line: str) -> str:
    """The line with all that differs between two runs or two machines replaced by a word for it."""
    for pattern, replacement in _MASKS:
        line = re.sub(pattern, replacement, line)
    return line.strip()


def shows(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines printed are those shown, with any lines where `…` stands."""
    expected = _masked(shown)
    actual = _masked(printed)
    if not any(_WASTE.match(line) for line in expected):
        actual = _trimmed([line for line in actual if not _WASTE.match(line)])
    if ANY_LINES not in expected:
        return expected == actual
    first, *others = _parts(expected)
    last = others.pop()
    if actual[: len(first)] != first:
        return False
    at = len(first)
    for part in others:
        while actual[at : at + len(part)] != part:
            at += 1
            if at > len(actual):
                return False
        at += len(part)
    return len(actual) - len(last) >= at and actual[len(actual) - len(last) :] == last


def _masked(lines: list[str]) -> list[str]:
    return _trimmed([mask(line) for line in lines])


def _trimmed(lines: list[str]) -> list[str]:
    """Without empty lines at the beginning and at the end."""
    filled = [number for number, line in enumerate(lines) if line]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _parts(lines: list[str]) -> list[list[str]]:
    """The lines between those that stand for any."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if line == ANY_LINES:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts
