"""Measures a piece of the calling program: a `with` block, a function, a coroutine, a generator."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence

from jobmeter.api.options import measure_options, requirement_of, warn
from jobmeter.api.results import Run, stored_windows
from jobmeter.light_typing import TYPE_CHECKING, Any
from jobmeter.meter.watch import Window
from jobmeter.model import Outcome, Requirement, Status
from jobmeter.session.block import Block
from jobmeter.session.block_steps import Awaited, count_steps

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TypeVar, overload

    from jobmeter.session.measuring import MeasureOptions

    _Function = TypeVar("_Function", bound=Callable[..., Any])


class BlockMeter:
    """Measures one piece of this program: by `with`, by `async with`, or from `start` to `stop`."""

    run: Run
    """What it used; once it has ended."""

    def __init__(
        self,
        options: MeasureOptions,
        requirement: Requirement,
        on_window: Callable[[Window], None] | None = None,
        *,
        stepped: bool = False,
    ) -> None:
        self._windows: list[tuple[float, Mapping[str, Any]]] = []
        self._is_stored = options.store is not None
        self._on_window = on_window
        self._block = Block(
            options,
            requirement,
            stepped=stepped,
            on_window=self._keep_window,
            live=on_window is not None,
            warn=warn,
        )

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._block.id

    def start(self) -> BlockMeter:
        """Begin to measure. StoreError when the store cannot be written."""
        self._block.start()
        return self

    def stop(self, error: BaseException | None = None) -> Run:
        """Measure no further, and return what was used since `start`. With an `error`, the run has failed of it."""
        raised = None if error is None else type(error).__name__
        self.run = Run(self._block.stop(outcome_of_error(error), raised), self._stored())
        return self.run

    def so_far(self) -> Run:
        """What was used until now; the status is `running`."""
        return Run(self._block.so_far(), self._stored())

    def _stored(self) -> Callable[[], Sequence[tuple[float, Mapping[str, Any]]]]:
        return stored_windows(self._block.journal_path, self.id) if self._is_stored else self._windows.copy

    def _keep_window(self, window: Window) -> None:
        if not self._is_stored:
            self._windows.append((window.seconds, window.cells))
        if self._on_window is not None:
            self._on_window(window)

    def __enter__(self) -> BlockMeter:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._block.belongs_here:  # else a forked process leaves the block of its parent
            self.stop(error)

    async def __aenter__(self) -> BlockMeter:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)


def measure(
    name: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    cpus: float | None = None,
    memory: int | str | None = None,
    runtime: float | str | None = None,
    interval: float | None = None,
    window: float | None = None,
    measurements: Sequence[str] | None = None,
    store: str | os.PathLike[str] | None = None,
    keep: bool = True,
    on_window: Callable[[Window], None] | None = None,
) -> BlockMeter:
    """Measure a piece of this program: this process from here to there, with everything that it starts meanwhile.

    with jobmeter.measure("load", memory="2g") as block:
        ...
    print(block.run.usage.cpu_seconds)

    CPU time is of all threads, and of the processes that were started, also of those nobody waits for. While other
    threads have blocks too, it is of the block's own thread with what that starts. `memory`, `cpus` and `runtime` are
    requests, which `check` and `size` go by. `measurements` are further keys; `on_window` is called with each window.
    UsageError for a key or a request that is not valid.
    """
    options = measure_options(name, labels, interval, window, measurements, store, keep)
    return BlockMeter(options, requirement_of(cpus, memory, runtime), on_window)


if TYPE_CHECKING:  # not from `typing`, whose import takes longer than the first block

    @overload
    def measured(function: _Function, /) -> _Function: ...

    @overload
    def measured(name: str | None = None, /, **options: Any) -> Callable[[_Function], _Function]: ...


def measured(name: Any = None, /, **options: Any) -> Any:
    """Measure every call of a function, coroutine or generator: `@measured` or `@measured("name", memory="2g")`.

    Takes the options of `measure`; without a name it has the function's. Of a coroutine or a generator, the time counts
    in which it runs itself, not what others do while it waits.
    """
    if callable(name):
        return _wrap(name, None, {})
    return lambda function: _wrap(function, name, options)


def _wrap(function: Callable[..., Any], name: str | None, options: Mapping[str, Any]) -> Callable[..., Any]:
    import inspect  # dear, and `measure` does without it

    wrapped_name = name or getattr(function, "__qualname__", repr(function))
    on_window = options.get("on_window")
    settings = {"labels": None, "interval": None, "window": None, "measurements": None, "store": None, "keep": True}
    requests = dict.fromkeys(("cpus", "memory", "runtime"))
    for key in options:
        if key not in settings and key not in requests and key != "on_window":
            raise TypeError(f"measured() has no option {key!r}; it takes those of measure()")
    requirement = requirement_of(**{**requests, **{key: options[key] for key in requests if key in options}})
    settings |= {key: options[key] for key in settings if key in options}

    def meter(*, stepped: bool = False) -> BlockMeter:
        return BlockMeter(measure_options(wrapped_name, **settings), requirement, on_window, stepped=stepped)  # type: ignore[arg-type]

    meter()  # bad options are an error where they stand, not at the first call
    if inspect.isasyncgenfunction(function):
        return _wrap_async_generator(function, meter)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_coroutine(*args: Any, **kwargs: Any) -> Any:
            with meter(stepped=True) as block:
                return await Awaited(count_steps(block._block, function(*args, **kwargs)))

        return call_coroutine
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def call_generator(*args: Any, **kwargs: Any) -> Any:
            with meter(stepped=True) as block:
                return (yield from count_steps(block._block, function(*args, **kwargs)))

        return call_generator

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with meter():
            return function(*args, **kwargs)

    return call


def _wrap_async_generator(function: Callable[..., Any], meter: Callable[..., BlockMeter]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        with meter(stepped=True) as block:
            generator = function(*args, **kwargs)
            step = generator.asend(None)
            try:
                while True:
                    try:
                        item = await Awaited(count_steps(block._block, step.__await__()))
                    except StopAsyncIteration:
                        return
                    try:
                        step = generator.asend((yield item))
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001 - it is for the generator to handle
                        step = generator.athrow(error)
            finally:
                await generator.aclose()

    return call


def outcome_of_error(error: BaseException | None) -> Outcome:
    """How a block ended: an exception is a failure, unless it says that all is well."""
    if error is None or isinstance(error, GeneratorExit):
        return Outcome(Status.COMPLETED, 0)
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        return Outcome(Status.COMPLETED if code == 0 else Status.FAILED, code)
    # Not by its class: asyncio is not imported for blocks that do not use it.
    is_cancelled = isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError"
    return Outcome(Status.CANCELLED if is_cancelled else Status.FAILED)
