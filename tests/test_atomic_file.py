"""Files that are replaced in one step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobmeter.atomic_file import replacing


def test_the_file_has_its_old_content_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    with replacing(str(path)) as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["plan.json"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_after_a_failure_the_old_file_is_there_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")

    def write_half() -> None:
        with replacing(str(path)) as file:
            file.write("ne")
            raise error

    with pytest.raises(error):
        write_half()
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["plan.json"])


def test_permissions_stay_and_a_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "spec.yaml", tmp_path / "link.yaml"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path.name)
    with replacing(str(link), binary=True) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("new", 0o640)


def test_a_new_file_has_the_permissions_that_any_new_file_has(tmp_path: Path) -> None:
    with replacing(str(tmp_path / "replaced")):
        pass
    (tmp_path / "created").touch()
    assert (tmp_path / "replaced").stat().st_mode == (tmp_path / "created").stat().st_mode


@pytest.mark.parametrize("name", ["n" * 255, "計" * 85, "n" + "🦆" * 63, os.fsdecode(b"\xff" * 255)])
def test_the_longest_name_that_a_file_can_have_is_no_obstacle(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with replacing(str(path)) as file:
        file.write("new")
    assert path.read_text() == "new"
