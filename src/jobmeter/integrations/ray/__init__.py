"""Measures Ray tasks and the calls of Ray actors: each is a run in the store.

from jobmeter.integrations.ray import measured

@ray.remote
@measured
def train(seed): ...

`install()` measures all tasks and actors that a driver starts, without a change of their code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar, overload

    _Measured = TypeVar("_Measured", bound="Callable[..., Any]")

__all__ = ["install", "measured"]

if TYPE_CHECKING:

    @overload
    def measured(work: _Measured, /) -> _Measured: ...

    @overload
    def measured(
        *, store: str | os.PathLike[str] | None = None, labels: Mapping[str, str] | None = None
    ) -> Callable[[_Measured], _Measured]: ...


def measured(
    work: Any = None, /, *, store: str | os.PathLike[str] | None = None, labels: Mapping[str, str] | None = None
) -> Any:
    """Measure every call of a function, of a method, or of all methods of a class: `@measured`, below `@ray.remote`.

    The store is that of the driver unless `store` names one; the nodes must see it. Outside of Ray's workers a call is
    not measured. Raises UsageError if a setting is not valid.
    """
    from jobmeter.integrations.ray.call_settings import call_settings
    from jobmeter.integrations.ray.wrapping import wrap

    settings = call_settings(store, labels)
    return wrap(work, settings) if work is not None else lambda each: wrap(each, settings)


def install(*, store: str | os.PathLike[str] | None = None, labels: Mapping[str, str] | None = None) -> None:
    """Measure all tasks and actors that this driver starts from now on, and those which they start in turn.

    Ray's own tasks and actors are not measured. Raises UsageError if a setting is not valid.
    """
    from jobmeter.integrations.ray.call_settings import call_settings
    from jobmeter.integrations.ray.installation import install_with

    install_with({**call_settings(store, labels), "everywhere": True})
