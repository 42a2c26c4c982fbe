"""The kind of a file is seen by what stands in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.errors import UsageError
from jobmeter.exchange.detect import recognise
from tests.exchange.reading import FIXTURES, written


@pytest.mark.parametrize("path", sorted(FIXTURES.iterdir()), ids=lambda path: path.name)
def test_every_fixture_is_recognised_whatever_it_is_called(tmp_path: Path, path: Path) -> None:
    if "usage" in path.name:
        return  # a part of a log, found through its info file
    copy = written(tmp_path, path.read_bytes(), "data")
    expected = path.name.partition("_")[0].partition(".")[0].replace("sacct", "slurm")
    with copy.open("rb") as file:
        assert expected == recognise(str(copy), file)
        assert 0 == file.tell()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty, so there is nothing to import"),
        (b"\n\n", "is empty, so there is nothing to import"),
        (b"a,b,c\n1,2,3\n", "its format is not recognised. Name it with --from KIND"),
        (bytes(range(256)) * 9, "its format is not recognised"),
        (b'{"a": 1}\n', "its format is not recognised"),
        (b"[1, 2]", "its format is not recognised"),
    ],
)
def test_what_is_of_no_kind_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    path = written(tmp_path, content)
    with path.open("rb") as file, pytest.raises(UsageError) as refused:
        recognise(str(path), file)
    assert str(refused.value).startswith(f"{path}: {why}")


def test_a_mark_of_byte_order_does_not_matter(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbfJobID|State\r\n1|COMPLETED\r\n")
    with path.open("rb") as file:
        assert "slurm" == recognise(str(path), file)
