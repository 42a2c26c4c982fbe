"""Which GPUs a job may use, as its environment says it."""

from __future__ import annotations

import pytest

from jobmeter.kernel.gpu import Gpu, visible

GPUS = [
    Gpu(0, "GPU-aa11", "A100", None, None, None),
    Gpu(1, "GPU-bb22", "A100", None, None, None),
    Gpu(2, "MIG-cc33", "A100", 0, None, None),
    Gpu(2, "MIG-dd44", "A100", 1, None, None),
]


@pytest.mark.parametrize(
    ("words", "uuids"),
    [
        ("0", ["GPU-aa11"]),
        ("1,0", ["GPU-bb22", "GPU-aa11"]),
        ("GPU-b", ["GPU-bb22"]),
        ("GPU-BB22", ["GPU-bb22"]),  # AMD's documentation has capitals, its files have none
        ("MIG-dd44", ["MIG-dd44"]),
        ("2:1", ["MIG-dd44"]),
        ("0,7,1", ["GPU-aa11"]),  # CUDA stops at the first that is not there
        ("-1", []),
        ("", []),
        ("none", []),
        ("void", []),
        (" 0 , 1 ", ["GPU-aa11", "GPU-bb22"]),
        ("0,0", ["GPU-aa11"]),
    ],
)
def test_the_gpus_that_a_variable_names(words: str, uuids: list[str]) -> None:
    assert uuids == [gpu.uuid for gpu in visible(words, GPUS) or []]


@pytest.mark.parametrize("words", [None, "all"])
def test_all_gpus_may_be_used_where_none_is_named(words: str | None) -> None:
    assert visible(words, GPUS) is None
