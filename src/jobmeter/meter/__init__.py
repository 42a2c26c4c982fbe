"""Samples jobs: when, how often, and what becomes of the readings."""
