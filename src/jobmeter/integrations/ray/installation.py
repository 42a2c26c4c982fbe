"""Measures all Ray tasks and actors that this process starts: wraps each function and class before Ray sends it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jobmeter.integrations.ray.wrapping import is_wrapped, wrap
from jobmeter.integrations.warnings import Warnings

_WARNINGS = Warnings()
_OTHERS = ("ray", "jobmeter")
"""Packages whose own tasks and actors are not measured."""

_settings: dict[str, Any] = {}


def install_with(settings: dict[str, Any]) -> None:
    """Measure from now on; calling it again changes the settings for functions and classes that were not sent yet."""
    from ray.actor import ActorClass
    from ray.remote_function import RemoteFunction

    is_first = not _settings
    _settings.update(settings)
    if is_first:
        RemoteFunction._remote = _before(RemoteFunction._remote, _prepare_function)
        ActorClass._remote = _before(ActorClass._remote, _prepare_actor)


def _before(method: Callable[..., Any], prepare: Callable[[Any], None]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _WARNINGS.instead_of_failing("a task is not measured"):
            prepare(self)
        return method(self, *args, **kwargs)

    return call


def _prepare_function(remote: Any) -> None:
    function = remote._function
    if not is_wrapped(function) and _is_to_be_measured(function):
        remote._function = wrap(function, dict(_settings))
        remote._last_export_cluster_and_job = None  # have Ray send it again: it may have sent it without the meter


def _prepare_actor(actor: Any) -> None:
    meta = actor.__ray_metadata__
    work = meta.modified_class
    if not is_wrapped(work) and _is_to_be_measured(work):
        wrap(work, dict(_settings))
        meta.last_export_cluster_and_job = None


def _is_to_be_measured(work: Any) -> bool:
    return str(getattr(work, "__module__", "")).partition(".")[0] not in _OTHERS
