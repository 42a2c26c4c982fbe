"""Starts jobs, sends them signals, and ends them with everything they started."""
