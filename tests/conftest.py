"""Fixtures that several folders of tests share."""

pytest_plugins = ["tests.container_engines"]
