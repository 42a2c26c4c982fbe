from __future__ import annotations

import subprocess
import sys

import pytest

from jobmeter.kernel import libc

_GET_CHILD_SUBREAPER, _INVALID = 37, 9999


def test_a_function_of_the_c_library_is_called_with_its_arguments() -> None:
    assert 7 == libc.call("abs", -7)
    assert -1 == libc.call("prctl", _INVALID, 0, 0, 0, 0)


def test_a_function_that_is_not_there_is_none() -> None:
    assert libc.call("no_such_function_of_any_library", 1) is None


@pytest.mark.parametrize("missing", ["_ctypes.call_function", "nothing"])
def test_it_does_not_depend_on_what_ctypes_is_made_of(missing: str) -> None:
    module, _, name = missing.partition(".")
    hide = f"import {module}; del {missing}\n" if name else ""
    code = f"{hide}from jobmeter.kernel import libc\nassert (7, None) == (libc.call('abs', -7), libc.call('no_such'))"
    subprocess.run([sys.executable, "-c", code], check=True)
