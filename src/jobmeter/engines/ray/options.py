"""What Ray sets up on the nodes for the jobs of a runner: `--working-dir` and `--runtime-env`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from jobmeter.errors import UsageError


class RuntimeOptions(NamedTuple):
    """A runtime environment of Ray, and the directory of this machine that the nodes get a copy of."""

    runtime_env: dict[str, Any]
    working_directory: str | None


def runtime_options(options: Mapping[str, str]) -> RuntimeOptions:
    """Parse the options. Raises UsageError if a value is not a directory, or not a JSON object."""
    environment = _object(options["runtime-env"]) if options.get("runtime-env") else {}
    if directory := options.get("working-dir"):
        if not os.path.isdir(directory):
            raise UsageError(f"--working-dir {directory}: there is no such directory")
        environment["working_dir"] = os.path.abspath(directory)
    root = environment.get("working_dir")
    # An archive at a URL is not a directory of this machine: then no paths have to be replaced by those of a copy.
    is_here = isinstance(root, str) and os.path.isdir(root)
    return RuntimeOptions(environment, os.path.abspath(str(root)) if is_here else None)


def _object(given: str) -> dict[str, Any]:
    text = given
    if not given.lstrip().startswith("{"):
        try:
            with open(given, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"--runtime-env {given}: neither a JSON object nor a file that can be read ({error})"
            ) from None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--runtime-env: it is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError('--runtime-env: it is no JSON object, as in {"env_vars": {"SEED": "1"}}')
    return value
