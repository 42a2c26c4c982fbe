"""What energy and hours cost, by the settings of the user."""

from __future__ import annotations

from jobmeter.analyse.cost import Factors
from jobmeter.settings import FACTORS, Configuration


def configured_factors() -> Factors:
    """UsageError for a setting that is not valid."""
    configuration = Configuration()
    return Factors(**{name: configuration.resolve(name) for name in FACTORS})
