"""`--share-group`: opens the store to a group."""

from __future__ import annotations

import os

from jobmeter.cli.shared.output import warn
from jobmeter.errors import UsageError
from jobmeter.settings import resolve
from jobmeter.store_access import is_shared_with, share_store


def share(store: str, given: str | None) -> None:
    """Open the store to the group that the option names; without it, a new store to the group of the configuration."""
    if given is not None:
        share_store(store, resolve("share_group", given))
        return
    group = resolve("share_group", None, warn)
    if group is None:
        return
    try:
        if not os.path.exists(f"{store}/journal"):
            share_store(store, group)
        elif not is_shared_with(store, group):
            warn(
                f"share_group: {store} is not shared with {group}. "
                f"To open it, with all its runs: jobmeter run --share-group {group} -- true"
            )
    except UsageError as error:
        warn(str(error))
