"""Plots: what runs used over time, as a page or as pictures."""
