from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.guest.boot import GuestError, boot
from tests.guest.image import build_image

Scenario = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """What a scenario found, by its name. The guest boots once and runs them all."""
    image = build_image(tmp_path_factory.mktemp("guest"))
    try:
        results = boot(image)
    except GuestError as error:
        pytest.fail(f"the guest: {error}", pytrace=False)

    def result_of(name: str) -> dict[str, Any]:
        result: dict[str, Any] = results[name]
        assert "error" not in result, result["error"]
        return result

    return result_of
