"""Queries of the index: which runs a user means, and what they have in common."""
