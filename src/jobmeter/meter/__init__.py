"""Samples jobs: when and how often, and how the readings are aggregated."""
