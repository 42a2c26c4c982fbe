"""Benchmarks, reported as text, tables and a page."""
