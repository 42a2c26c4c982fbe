"""Puts a meter around functions and methods.

Ray sends the wrappers to its nodes as code. So they use nothing of this module, and import jobmeter when they are
called: on a node without jobmeter, the work is still done, but not measured.
"""

# ruff: noqa: BLE001 - whatever fails in the meter, the work goes on

from __future__ import annotations

import functools
import inspect
from typing import Any

MARK = "__jobmeter_measured__"


def wrap(work: Any, settings: dict[str, Any]) -> Any:
    """The function with a meter around it; of a class, the same class with a meter around each of its methods."""
    if getattr(work, MARK, None) is work:
        return work
    if inspect.isclass(work):
        _wrap_methods(work, settings)
        return work
    wrapped = _wrapper(work, settings)
    setattr(wrapped, MARK, wrapped)
    return wrapped


def is_wrapped(work: Any) -> bool:
    return getattr(work, MARK, None) is work or (inspect.isclass(work) and MARK in vars(work))


def _wrap_methods(work: type, settings: dict[str, Any]) -> None:
    for name in dir(work):
        method = inspect.getattr_static(work, name)
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("__")):
            setattr(work, name, wrap(method, settings))
    setattr(work, MARK, True)


def _wrapper(function: Any, settings: dict[str, Any]) -> Any:
    if inspect.isasyncgenfunction(function):
        return _async_generator(function, settings)
    if inspect.iscoroutinefunction(function):
        return _coroutine(function, settings)
    if inspect.isgeneratorfunction(function):
        return _generator(function, settings)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            from jobmeter.integrations.ray.call_meter import begin

            meter = begin(function, settings)
        except Exception:
            meter = None
        if meter is None:
            return function(*args, **kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            meter.end(error)
            raise
        meter.end()
        return result

    return call


def _coroutine(function: Any, settings: dict[str, Any]) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        try:
            from jobmeter.integrations.ray.call_meter import begin

            meter = begin(function, settings, stepped=True)
        except Exception:
            meter = None
        if meter is None:
            return await function(*args, **kwargs)
        try:
            result = await meter.awaited(function(*args, **kwargs))
        except BaseException as error:
            meter.end(error)
            raise
        meter.end()
        return result

    return call


def _generator(function: Any, settings: dict[str, Any]) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            from jobmeter.integrations.ray.call_meter import begin

            meter = begin(function, settings, stepped=True)
        except Exception:
            meter = None
        if meter is None:
            return (yield from function(*args, **kwargs))
        try:
            result = yield from meter.steps(function(*args, **kwargs))
        except BaseException as error:
            meter.end(error)
            raise
        meter.end()
        return result

    return call


def _async_generator(function: Any, settings: dict[str, Any]) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        try:
            from jobmeter.integrations.ray.call_meter import begin

            meter = begin(function, settings, stepped=True)
        except Exception:
            meter = None
        generator = function(*args, **kwargs)
        if meter is None:
            async for item in generator:
                yield item
            return
        try:
            while True:
                try:
                    item = await meter.awaited(generator.__anext__().__await__())
                except StopAsyncIteration:
                    break
                yield item
        except BaseException as error:
            meter.end(error)
            raise
        finally:
            await generator.aclose()
        meter.end()

    return call
