"""Commands that read the store, run by several users."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

from tests.parts import missing, need_root
from tests.running import become, environment_with_packages, interpreter, workplace
from tests.waiting import LONG

ANOTHER = 65533
"""A user who is neither root nor NOBODY."""


@functools.cache
def reading_environment(user: int) -> dict[str, str]:
    """An environment in which this user can import what the commands need that read the store."""
    need_root("to become several users")
    variables = environment_with_packages()
    words = [*become(user), interpreter(), "-c", "import sqlalchemy, rich, jobmeter.store"]
    tried = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    if tried.returncode:
        missing(f"user {user} cannot import the packages of {sys.executable}: {tried.stderr[-200:]}")
    return variables


def jobmeter_of(
    *arguments: str, user: int = 0, groups: tuple[int, ...] = (), umask: int = 0o022, **options: Any
) -> subprocess.CompletedProcess[str]:
    """`jobmeter ARGUMENTS` by a user, who is also a member of these groups."""
    folder = workplace()
    variables = {**reading_environment(user), "HOME": folder, **options.pop("variables", {})}
    words = become(user)
    if groups:
        words[words.index("--clear-groups")] = f"--groups={','.join(map(str, groups))}"
    settings: dict[str, Any] = {
        "cwd": folder, "env": variables, "capture_output": True, "text": True, "umask": umask, **options,
    }  # fmt: skip
    return subprocess.run([*words, interpreter(), "-m", "jobmeter", *arguments], check=False, timeout=LONG, **settings)
