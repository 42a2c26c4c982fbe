"""User data of one run of a workflow: small values that jobs hand to each other, a JSON file for each.

A value is in `<run>/data/NAME.json`, which is replaced atomically; `<run>/data/names` lists the names.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote as as_file_name

from jobmeter.atomic_file import replacing
from jobmeter.errors import StoreError, UsageError, quote
from jobmeter.store_access import Access, access_like, make_directory
from jobmeter.suggestion import suggest
from jobmeter.workflow.plan import Job, UserData, data_reference

LARGEST = 1 << 20
"""The most bytes that one value may have as JSON. Larger values belong in files."""
LARGEST_VARIABLE = 100_000
"""The most bytes of a value that a job gets in its environment: Linux allows 128 KiB."""
VARIABLE = "JOBMETER_DATA_"
_NAMES = "names"
_REFERENCE = re.compile(r"\$\{user_data\.([^{}]*)\}")


class DataDirectory:
    """The user data of one run."""

    def __init__(self, path: str) -> None:
        self.path = path

    def file(self, name: str) -> str:
        return f"{self.path}/{as_file_name(name, safe='')}.json"

    def has(self, name: str) -> bool:
        return os.path.exists(self.file(name))

    def names(self) -> list[str]:
        """The names of the user data in the spec."""
        try:
            with open(f"{self.path}/{_NAMES}", encoding="utf-8") as file:
                names: list[str] = json.load(file)
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path}/{_NAMES}: {error}") from None
        return names

    def get(self, name: str) -> Any:
        """The value of user data. Raises UsageError if the spec has no such data, or it has no value yet."""
        self._check_name(name)
        try:
            with open(self.file(name), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            raise UsageError(f"user data {quote(name)} has no value yet") from None
        except OSError as error:
            raise StoreError(f"{self.file(name)}: {error.strerror}") from None
        except ValueError as error:
            raise UsageError(f"{self.file(name)}: is not JSON: {error}") from None

    def set(self, name: str, value: Any) -> None:
        """Set the value of user data. Raises UsageError if the spec has no such data, or the value is too large."""
        self._check_name(name)
        self._write(name, value)

    def prepare(self, user_data: Mapping[str, UserData], made: Iterable[str]) -> None:
        """Write the values of the spec, before any job starts. A value that exists stays if jobs make it: `made`."""
        made = set(made)
        try:
            if not os.path.isdir(self.path):
                make_directory(self.path, self._access())
            with replacing(f"{self.path}/{_NAMES}", access=self._access()) as file:
                json.dump(list(user_data), file)
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from None
        for name, data in user_data.items():
            if data.value is not None and not (name in made and self.has(name)):
                self._write(name, data.value)

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(self.file(name))

    def resolved(self, text: str) -> str:
        """`text` with the path of the file in place of each reference to user data: see `data_reference`."""
        return _REFERENCE.sub(lambda match: self.file(match[1]), text) if _MARK in text else text

    def variables(self, job: Job) -> dict[str, str]:
        """The user data that a job reads, as environment variables: a text as it is, all else as JSON."""
        variables = {}
        for name in job.input_data:
            try:
                value = self.get(name)
            except (UsageError, StoreError):
                continue  # there is no value, and the job will notice that
            text = value if isinstance(value, str) else json.dumps(value)
            if len(text.encode()) <= LARGEST_VARIABLE and "\0" not in text:
                variables[variable_name(name)] = text
        return variables

    def _write(self, name: str, value: Any) -> None:
        text = json.dumps(value)
        if len(text) > LARGEST:
            raise UsageError(f"user data {quote(name)}: {len(text):,} bytes are more than {LARGEST:,}. Use a file.")
        try:
            with replacing(self.file(name), access=self._access()) as file:
                file.write(text)
        except OSError as error:
            raise StoreError(f"{self.file(name)}: {error.strerror}") from None

    def _check_name(self, name: str) -> None:
        names = self.names()
        if name not in names:
            raise UsageError(f"there is no user data {quote(name)} in this workflow. {suggest(name, names)}")

    def _access(self) -> Access:
        return access_like(os.path.dirname(self.path))


_MARK = data_reference("")[:-1]


def variable_name(name: str) -> str:
    """The name of the environment variable that has the value of user data."""
    return VARIABLE + re.sub(r"\W", "_", name, flags=re.ASCII).upper()
