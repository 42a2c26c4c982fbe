"""Functions of the C library that Python does not have."""

from __future__ import annotations


def call(name: str, *arguments: int) -> int | None:
    """Call a function of the C library, and return its result; None if the library does not have it."""
    try:
        # The C module of `ctypes`: importing `ctypes` itself takes a fortieth of the CPU time of a whole short run.
        from _ctypes import call_function, dlopen, dlsym
    except ImportError:
        import ctypes

        function = getattr(ctypes.CDLL(None), name, None)
        return None if function is None else int(function(*arguments))
    try:
        return int(call_function(dlsym(dlopen(None, 0), name), arguments))  # type: ignore[arg-type]
    except OSError:
        return None
