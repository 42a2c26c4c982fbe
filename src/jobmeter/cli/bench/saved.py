"""Saved benchmarks: baselines to compare others with."""

from __future__ import annotations

import contextlib
import json
import os
import re

from jobmeter.analyse.bench_result import BenchResult, result_from_json
from jobmeter.atomic_file import replacing
from jobmeter.errors import StoreError, UsageError
from jobmeter.report.bench.formats import as_json
from jobmeter.store_access import make_store_directory
from jobmeter.suggestion import suggest

_FOLDER = "benches"
_NAME = re.compile(r"[A-Za-z0-9_][\w.-]{0,99}")


def check_name(name: str) -> str:
    """Return the name to save a benchmark under. Raises UsageError if it cannot be a file name."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of a benchmark: use letters, digits, `_`, `-` and `.`")
    return name


def save(store: str, name: str, result: BenchResult) -> str:
    """Save the benchmark in the store, in place of an earlier one of this name, and return the path of the file."""
    path = _path(store, name)
    try:
        access = make_store_directory(store, _FOLDER)
        with replacing(path, access=access) as file:
            file.write(as_json(result))
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}") from None
    return path


def load(store: str, text: str) -> BenchResult:
    """Load the benchmark that was saved under this name, or that of a file. Raises UsageError if there is none."""
    is_file = text.endswith(".json") or "/" in text
    path = text if is_file else _path(store, check_name(text))
    try:
        with open(path, encoding="utf-8") as file:
            return result_from_json(json.load(file))
    except FileNotFoundError:
        if is_file:
            raise UsageError(f"--baseline: {path}: no such file") from None
        names = saved_names(store)
        hint = suggest(text, names, None if names else "`--save NAME` saves one.")
        raise UsageError(f"--baseline: there is no benchmark {text!r}. {hint}") from None
    except OSError as error:
        raise UsageError(f"--baseline: {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = str(error) if "this version reads" in str(error) else "what jobmeter bench writes as JSON is expected"
        raise UsageError(f"--baseline: {path}: it is no benchmark: {why}") from None


def saved_names(store: str) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(name.removesuffix(".json") for name in os.listdir(f"{store}/{_FOLDER}") if name.endswith(".json"))
    return []


def _path(store: str, name: str) -> str:
    return f"{store}/{_FOLDER}/{name}.json"
