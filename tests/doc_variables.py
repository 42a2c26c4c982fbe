"""The environment variables that code reads or sets, found in its syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_NAME_OF_ONE_WORD = re.compile(r"[A-Z][A-Z0-9]+")
_QUOTED_NAME = re.compile(rf"""["']{_NAME.pattern}["']""")
_ENVIRONMENT = re.compile("environ|getenv")


def trees(folder: Path, containing: re.Pattern[str]) -> Iterator[ast.AST]:
    """The syntax tree of every module of a folder that contains this: to parse all of them takes half a minute."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if containing.search(text):
            yield ast.parse(text)


def possible_variables(folder: Path) -> set[str]:
    """Every text that has the form of a variable's name, whatever is done with it, and every key of an environment.

    Names reach the environment through constants, parameters and other modules. So each text of capitals with an
    underscore counts; one without an underscore counts if it is the key of something called an environment.
    """
    nodes = (node for tree in trees(folder, _QUOTED_NAME) for node in ast.walk(tree))
    names = {text for node in nodes for text in texts(node) if _NAME.fullmatch(text)}
    return names | {name for name in environment_keys(folder) if _NAME_OF_ONE_WORD.fullmatch(name)}


def environment_keys(folder: Path) -> set[str]:
    """Texts that are keys of an environment: `environ["X"]`, `environ.get("X")`, `"X" in environ`, `getenv("X")`."""
    return {key for tree in trees(folder, _ENVIRONMENT) for node in ast.walk(tree) for key in _keys(node)}


def dictionary_keys(folder: Path) -> set[str]:
    """The texts that are keys of a dictionary that is written out."""
    nodes = (node for tree in trees(folder, _QUOTED_NAME) for node in ast.walk(tree))
    dictionaries = (node for node in nodes if isinstance(node, ast.Dict))
    return {text for node in dictionaries for key in node.keys if key is not None for text in texts(key)}


def _keys(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Subscript) and _is_environment(node.value):
        yield from texts(node.slice)
    elif isinstance(node, ast.Compare) and any(map(_is_environment, node.comparators)):
        yield from texts(node.left)
    elif isinstance(node, ast.Call) and node.args:
        function = node.func
        is_method = isinstance(function, ast.Attribute) and _is_environment(function.value)
        if is_method or (isinstance(function, (ast.Attribute, ast.Name)) and _last_name(function) == "getenv"):
            yield from texts(node.args[0])
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Dict):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(map(_is_environment, targets)):
            for key in filter(None, node.value.keys):
                yield from texts(key)


def _is_environment(node: ast.AST) -> bool:
    return "environ" in _last_name(node)


def _last_name(node: ast.AST) -> str:
    """`c` of `a.b.c`, and `c` of `c`; empty for what has no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def texts(node: ast.AST) -> Iterator[str]:
    """The text that a node is, if it is one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
