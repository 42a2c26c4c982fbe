"""A working directory that was removed, and paths in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.working_directory import absolute_path, near_path, present_directory


@pytest.fixture
def removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()


def test_a_path_is_absolute_and_near_as_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"{tmp_path}/b" == absolute_path("a/../b")
    assert ("a/b", "..a", "/etc/passwd") == (
        near_path(f"{tmp_path}/a/b"), near_path(f"{tmp_path}/..a"), near_path("/etc/passwd")
    )  # fmt: skip


@pytest.mark.usefixtures("removed")
def test_in_a_removed_directory_a_path_stays_as_it_is() -> None:
    assert ("", "a/b", "/a", "/a") == (present_directory(), absolute_path("a/b"), absolute_path("/a"), near_path("/a"))
