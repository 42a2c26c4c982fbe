"""The cost factors of energy and hours, from the user's settings."""

from __future__ import annotations

from jobmeter.analyse.cost import Factors
from jobmeter.settings import FACTORS, Configuration


def configured_factors() -> Factors:
    """The factors of the configuration. Raises UsageError if a setting is not valid."""
    configuration = Configuration()
    return Factors(**{name: configuration.resolve(name) for name in FACTORS})
